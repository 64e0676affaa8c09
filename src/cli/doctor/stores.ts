import { mkdtemp, readdir, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { shellQuote } from '../../lib/message-text.ts'
import { connectPostgres, postgresErrorReason } from '../../stores/postgres/connection.ts'
import { currentSchemaVersion, schemaVersion, wrongEncoding } from '../../stores/postgres/migrations.ts'
import { pubSubChannel } from '../../stores/redis/cluster.ts'
import { connectRedis, isUp, type SharedRedis } from '../../stores/redis/connection.ts'
import { sizeText } from '../table.ts'
import {
  type CheckContext,
  type CheckFinding,
  chownCommand,
  type Findings,
  findingsOr,
  isForeign,
  octal,
  ok,
  problem,
  warning,
} from './finding.ts'

/** Checks that the state folders are writable. */
export async function storeFolderFindings(
  { stores, audit }: Config,
  { short }: Pick<CheckContext, 'short'>,
  tryWrite = createAndRemove,
): Promise<Findings> {
  const stored = [stores.path, stores.common, join(stores.path, 'audit')]
  const folders = [...new Set([stores.path, stores.common, audit.path])].map((path) => {
    return { path, setting: stored.includes(path) ? 'stores.path' : 'audit.path', shown: short(path) }
  })
  const found = await Promise.all(folders.map((folder) => folderProblem(folder, tryWrite)))
  // Folders inside one that cannot be entered have the same remedy.
  const different = found.filter((one, index) => found.findIndex((other) => other?.remedy === one?.remedy) === index)
  return findingsOr(different, ok(`${short(stores.path)} is writable`))
}

async function folderProblem(
  { path, shown, setting }: Readonly<Record<'path' | 'shown' | 'setting', string>>,
  tryWrite: typeof createAndRemove,
): Promise<CheckFinding | undefined> {
  const elsewhere = `${setting}: /a/folder/that/can/be/written`
  const there = await nearest(path)
  if (!there.isFolder) return problem(`${shown} cannot be a folder: ${there.path} is a file`, elsewhere)
  const exists = there.path === path
  try {
    await tryWrite(there.path)
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    const why = exists ? '' : `, and it cannot be created in ${there.path}`
    const remedy = isDenied(code) ? await deniedRemedy(path, there) : spaceRemedy(there.path, code)
    return problem(`${shown} is not writable (${code})${why}`, remedy ?? elsewhere)
  }
  if (!exists) return undefined
  if (isForeign(there.uid)) {
    return problem(
      `${shown} belongs to another user`,
      (await isToolwayFolder(path)) ? chownCommand(path, '-R') : elsewhere,
    )
  }
  if (process.platform === 'win32' || (there.mode & 0o022) === 0) return undefined
  // Folders with the sticky bit, such as /tmp, are meant for all users.
  const remedy = (there.mode & 0o1000) === 0 ? `chmod go-w ${shellQuote(path)}` : elsewhere
  return problem(`others may write to ${shown} (mode ${octal(there.mode)})`, remedy)
}

/** Creates a folder, because file modes do not reveal a read-only file system or an exhausted quota. */
const createAndRemove = async (path: string): Promise<void> => rmdir(await mkdtemp(join(path, '.toolway-doctor-')))

async function deniedRemedy(wanted: string, { path, uid, isHidden }: NearestFolder): Promise<string | undefined> {
  // Create the folder itself; its parents belong to others.
  if (path !== wanted && !isHidden) return `sudo mkdir -p ${shellQuote(wanted)} && ${chownCommand(wanted)}`
  const writable = `chmod u+rwx ${shellQuote(path)}`
  if (uid === process.getuid?.()) return writable
  return (await isToolwayFolder(path)) ? `${chownCommand(path, '-R')} && ${writable}` : undefined
}

const isDenied = (code: string): boolean => code === 'EACCES' || code === 'EPERM'

function spaceRemedy(path: string, code: string): string | undefined {
  if (code === 'ENOSPC') return `df -h ${shellQuote(path)}   # free some space there`
  return code === 'EDQUOT' ? 'quota   # free some space there' : undefined
}

/** Whether only Toolway uses a folder. Others, such as /var/lib, must not get another owner with all their content. */
async function isToolwayFolder(path: string): Promise<boolean> {
  if (path.split(sep).some((name) => /^\.?toolway$/i.test(name))) return true
  const content = await readdir(path).catch(() => undefined)
  return content?.length === 0
}

interface NearestFolder {
  readonly path: string
  readonly isFolder: boolean
  readonly mode: number
  readonly uid: number
  /** Whether the wanted path may exist in a folder that this user cannot enter. */
  readonly isHidden: boolean
}

/** The folder, or its nearest existing parent. */
async function nearest(path: string, isHidden = false): Promise<NearestFolder> {
  try {
    const found = await stat(path)
    return { path, isFolder: found.isDirectory(), mode: found.mode, uid: found.uid, isHidden }
  } catch (error) {
    if (dirname(path) === path) throw error
    return nearest(dirname(path), isHidden || isDenied((error as NodeJS.ErrnoException).code ?? ''))
  }
}

/** Space that the audit log reserves for the end records of calls in flight. */
const reserveBytes = 256 * 1024
/** Minimum free space; less is a problem. This is enough for the reserve and some records. */
const minBytes = 4 * reserveBytes
/** Free space below which a warning is shown. This is enough for a few log files. */
const enoughBytes = 256 * 1024 * 1024

/** Checks the free space for the audit log; without space, write calls are refused. */
export async function storeSpaceFinding({ audit }: Config, measure = freeBytes): Promise<CheckFinding> {
  const { path } = await nearest(audit.path)
  const { bytes, noFiles } = await measure(path)
  const look = `df -h ${shellQuote(path)}   # free some space there, or set audit.path and stores.path`
  if (noFiles) return problem("the audit log's file system has no inodes left", `df -i ${shellQuote(path)}`)
  const free = `${sizeText(bytes)} free for the audit log`
  if (bytes < minBytes) return problem(`${free}, which is too little, so write calls are refused`, look)
  return bytes < enoughBytes ? warning(free, look) : ok(free)
}

async function freeBytes(path: string): Promise<{ readonly bytes: number; readonly noFiles: boolean }> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  // Some file systems do not report the number of files; `files` is 0 then.
  return { bytes: bavail * bsize, noFiles: files > 0 && ffree === 0 }
}

export async function postgresFindings(
  { stores: { postgres: configured } }: Config,
  { command }: Pick<CheckContext, 'command'>,
): Promise<Findings> {
  if (!configured || configured.disabled) return []
  await using postgres = await connectPostgres(configured.url)
  const { where } = postgres
  try {
    const encoding = await wrongEncoding(postgres)
    if (encoding) return problem(`${where}: ${encoding}`, `createdb --encoding UTF8 --template template0 toolway`)
    if ((await schemaVersion(postgres)) >= currentSchemaVersion)
      return ok(`${where} is reachable, and its tables are up to date`)
    const behind = `${where} is reachable; its tables are outdated`
    return configured.migrate === 'auto'
      ? ok(`${behind} and will be migrated at the next start`)
      : problem(behind, `${command} migrate`)
  } catch (cause) {
    const message = `${where} is unavailable (${postgresErrorReason(cause)}): audit records stay on this machine until it is available`
    return warning(message, 'stores.postgres.url: postgres://USER@HOST/DATABASE')
  }
}

/** Checks that Redis accepts the credentials, writes, scripts, and messages between replicas. */
export async function redisFindings({ stores: { redis: configured } }: Config): Promise<Findings> {
  if (!configured || configured.disabled) return []
  await using redis = await connectRedis({ url: configured.url, clock: systemClock, log: silentLog })
  await isUp(redis, systemClock)
  const remedy = 'stores.redis.url: redis://HOST:PORT/DATABASE, with a user and password if it needs them'
  if (!redis.up) {
    const why = redis.problem ?? 'no response'
    return warning(`${redis.where} is unavailable (${why}): limits, results and sessions are not shared`, remedy)
  }
  const refusal = await messageRefusal(redis)
  if (refusal === '') return ok(`${redis.where} is reachable, and accepts writes, scripts and messages`)
  const why = refusal ?? 'no response'
  return warning(`${redis.where} refuses messages between replicas (${why}): a reload affects one replica`, remedy)
}

/** Why Redis refuses to publish or subscribe, or an empty text. Replicas ignore messages that are not sealed. */
const messageRefusal = (redis: SharedRedis): Promise<string | undefined> =>
  redis.ask(async (client) => {
    try {
      await client.publish(pubSubChannel(redis), '')
      await client.subscribe(pubSubChannel(redis))
      return ''
    } catch (error) {
      return (error as Error).message
    }
  })

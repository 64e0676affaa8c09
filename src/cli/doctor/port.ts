import { existsSync, readFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { pluralize } from '../../lib/message-text.ts'
import { version } from '../../runtime/package-paths.ts'
import { NoGateway, RefusedByGateway, runningGateway } from '../running-gateway.ts'
import { span } from '../table.ts'
import { type CheckContext, type CheckFinding, type DoctorCheck, ok, problem, warning } from './finding.ts'

/** Checks whether the gateway can listen on its address; if the address is in use, reports by which process. */
export const portCheck = (config: Config, context: CheckContext): DoctorCheck => ({
  name: 'port',
  async run(signal) {
    const { host, port } = config.server
    const place = `${host}:${port}`
    if (port === 0) return ok('server.port is 0: any free port is used')
    const refusal = await tryToListen(host, port)
    if (refusal === undefined) return ok(`${place} is free`)
    if (refusal.code === 'EADDRINUSE') return portTaken(config, context, signal)
    const { message, remedy } = reasons[refusal.code ?? ''] ?? { message: refusal.message, remedy: 'server.port: 4322' }
    return problem(`cannot listen on ${place}: ${message}`, remedy)
  },
})

const reasons: Readonly<Record<string, { readonly message: string; readonly remedy: string }>> = {
  EACCES: { message: 'only root may use ports below 1024', remedy: 'server.port: 4322' },
  EADDRNOTAVAIL: { message: 'this machine has no such address', remedy: 'server.host: 127.0.0.1' },
  ENOTFOUND: { message: 'unknown host name', remedy: 'server.host: 127.0.0.1' },
  EAI_AGAIN: { message: 'the host name cannot be looked up at the moment', remedy: 'server.host: 127.0.0.1' },
}

/** Listens on the address for a moment; returns the error if that fails. */
function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((settle) => {
    const server = createServer()
    server.once('error', (error) => settle(error))
    server.listen({ host, port, exclusive: true }, () => server.close(() => settle(undefined)))
  })
}

async function portTaken(config: Config, { command, clock }: CheckContext, signal: AbortSignal) {
  const { host, port } = config.server
  const [answer, holder] = await Promise.all([fetchOverview(config, signal), portHolder(port)])
  const by = holderText(holder)
  const elsewhere = `${command} serve --port 0`
  if (answer === undefined) {
    const end = holder?.pid === undefined ? '' : `ps -fp ${holder.pid}   # then stop it, or: `
    return problem(`${host}:${port} is in use by ${by}, which is not Toolway`, end + elsewhere)
  }
  if (answer instanceof RefusedByGateway) {
    const message = `${host}:${port} is in use by another Toolway gateway (${by}), which rejects our token: ${answer.message}`
    return problem(message, elsewhere)
  }
  return ourFinding(answer, `${host}:${port} is served by Toolway ${answer.version} (${by})`, command, clock)
}

/** The part of the `GET overview` response that is used here. */
interface Overview {
  readonly version: string
  readonly startedAt: number
  readonly servers: Readonly<Record<string, number>>
  /** Absent in gateways before 0.2.0. */
  readonly unhealthy?: number
  readonly tools: number
  readonly reload: { readonly lastError: string | null }
}

/** The overview of the gateway on this port, or its refusal; undefined if no gateway answers. */
async function fetchOverview(config: Config, signal: AbortSignal): Promise<Overview | RefusedByGateway | undefined> {
  // Do not generate a token just for this check.
  const unknown = config.auth.token === 'generated' && !existsSync(join(config.stores.common, 'token'))
  const auth = unknown ? { ...config.auth, token: 'none' } : config.auth
  try {
    const gateway = await runningGateway({ ...config, auth })
    const overview = await gateway.get<Overview>('overview', signal)
    return typeof overview?.version === 'string' && typeof overview.servers === 'object' ? overview : undefined
  } catch (thrown) {
    if (thrown instanceof RefusedByGateway) return thrown
    if (thrown instanceof NoGateway) return undefined
    throw thrown
  }
}

function ourFinding(overview: Overview, is: string, command: string, clock: Clock): CheckFinding {
  const { servers, unhealthy = 0, tools, startedAt, reload } = overview
  if (reload?.lastError) {
    const message = `${is}, but the current configuration could not be applied: ${reload.lastError}`
    return warning(message, `${command} validate`)
  }
  if (overview.version !== version) {
    return warning(`${is}; this command is ${version}`, `stop that process, then: ${command} serve`)
  }
  const known = Object.values(servers).reduce((sum, number) => sum + number, 0)
  const up = `${is}, up for ${span(clock.now() - startedAt)}: ${pluralize(known, 'server')}${unhealthy > 0 ? ` (${unhealthy} not healthy)` : ''}, ${pluralize(tools, 'tool')}`
  return unhealthy > 0 ? warning(up, `${command} servers`) : ok(up)
}

function holderText(holder: Holder | undefined): string {
  if (holder === undefined) return 'another program'
  const { pid, program, uid } = holder
  if (pid === undefined) return `a process owned by user ${uid}`
  return program === undefined ? `process ${pid}` : `${program}, process ${pid}`
}

/** The process that is listening on a port, with the details that the kernel reveals. */
interface Holder {
  readonly pid?: number
  /** The program's name, without its arguments, which may contain secrets. */
  readonly program?: string | undefined
  readonly uid: number
}

/** Finds the process that is listening on a port; undefined if the kernel does not reveal it. */
export async function portHolder(port: number): Promise<Holder | undefined> {
  const socket = ['tcp', 'tcp6'].flatMap((table) => listening(table, port))[0]
  if (!socket) return undefined
  const pid = await processWith(`socket:[${socket.inode}]`)
  if (pid === undefined) return { uid: socket.uid }
  return { pid, uid: socket.uid, program: await programOf(pid) }
}

/** The file name of a running program; undefined if it has exited or belongs to another user. */
export const programOf = (pid: number): Promise<string | undefined> =>
  readlink(`/proc/${pid}/exe`).then(basename, () => undefined)

const listens = '0A'

function listening(table: string, port: number): { readonly inode: string; readonly uid: number }[] {
  return procRows(`/proc/net/${table}`).flatMap((row) => {
    const [, local = '', , state, , , , uid, , inode = ''] = row.trim().split(/\s+/)
    const theirs = Number.parseInt(local.split(':').at(-1) ?? '', 16)
    return state === listens && theirs === port ? [{ inode, uid: Number(uid) }] : []
  })
}

/** The lines of a file in /proc; empty if the file cannot be read. */
export function procRows(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n')
  } catch {
    return []
  }
}

async function processWith(target: string): Promise<number | undefined> {
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    // Other users' processes cannot be inspected, and some processes have just exited.
    const open = await readdir(`/proc/${pid}/fd`).catch(() => [])
    const targets = await Promise.all(open.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
    if (targets.includes(target)) return Number(pid)
  }
  return undefined
}

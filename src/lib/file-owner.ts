import { createHash, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** When this process started, by the clock that file times come from. */
const startedAt = Date.now() - process.uptime() * 1_000

const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/** A new path for a temporary file beside `path`. Its name tells which process writes it. */
export function temporaryBeside(path: string): string {
  const random = randomBytes(6).toString('hex')
  return join(dirname(path), `${temporaryStart(path)}${machine}-${process.pid}-${random}.tmp`)
}

/** How the names of temporary files for `path` begin: they are hidden. */
export const temporaryStart = (path: string): string => `${basename(path).replace(/^(?!\.)/, '.')}.`

const temporaryName = /^\..+\.([0-9a-f]{8})-(\d+)-[0-9a-f]{12}\.tmp$/

/** The process of this machine that writes a temporary file; undefined if it is another machine's or not temporary. */
export function writerOf(path: string): number | undefined {
  const [, where, pid] = temporaryName.exec(basename(path)) ?? []
  return where === machine ? Number(pid) : undefined
}

/**
 * Whether the process that created a file has ended. The pid of this process may be that of an earlier one, which is
 * the rule in containers: then the file is older than this process.
 */
export async function hasOwnerEnded(pid: number, path: string): Promise<boolean> {
  if (pid !== process.pid) return !isRunning(pid)
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  return mtimeMs !== undefined && mtimeMs < startedAt
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

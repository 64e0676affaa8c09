import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { writeNew } from './atomic-write.ts'

/** How long to wait for a lock. A process usually holds one only while it writes a small file. */
const defaultWaitMs = 20_000
const pollMs = 20
/** A lock from another machine, or one that a crash left half written, counts as abandoned after this time. */
const maxAgeMs = 10 * 60_000

/** Holds a lock file until the returned object is disposed of. Removes the lock of a process that has died. */
export async function lockFile(path: string, waitMs = defaultWaitMs): Promise<AsyncDisposable> {
  const mine = `${process.pid} ${hostname()} ${randomBytes(6).toString('hex')}\n`
  const end = performance.now() + waitMs
  while (!(await writeNew(path, mine))) {
    const held = await readFile(path, 'utf8').catch(() => '')
    if (await isAbandoned(path, held)) await removeAbandoned(path, held)
    else if (performance.now() > end) {
      throw new Error(
        `${path} is locked by process ${held.trim() || 'unknown'}; if that process is not running, remove the file`,
      )
    } else await pause(pollMs)
  }
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

async function isAbandoned(path: string, held: string): Promise<boolean> {
  const [pid = '', host] = held.split(' ')
  // Whether a process is running can be checked only on its own machine.
  if (/^\d+$/.test(pid) && host === hostname()) return !isRunning(Number(pid))
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  return mtimeMs !== undefined && Date.now() - mtimeMs > maxAgeMs
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** Removes an abandoned lock. Moves it aside first, and puts it back if it turns out to be a new lock. */
async function removeAbandoned(path: string, abandoned: string): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await rename(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  if ((await readFile(aside, 'utf8')) !== abandoned) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Whoever holds a lock longer than this has died or hangs. */
const staleMs = 10_000
const tries = 600

/** Runs `work` while no other process does so under the same lock file. */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const token = `${process.pid} ${randomUUID()}`
  for (let attempt = 0; !(await taken(path, token)); attempt++) {
    if (attempt >= tries) throw new Error(`${path} has been held for too long; remove it if no Toolway is running`)
    await breakStale(path)
    // A timer of the process and not of the clock: nothing else would keep a command alive that waits for its turn.
    await pause(10 + Math.random() * 20)
  }
  try {
    return await work()
  } finally {
    // Somebody may have taken us for dead.
    if ((await read(path)) === token) await rm(path, { force: true })
  }
}

async function taken(path: string, token: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.writeFile(token)
    } finally {
      await file.close()
    }
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function breakStale(path: string): Promise<void> {
  const token = await read(path)
  if (token === undefined) return
  const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? {}
  const now = Date.now()
  if (mtimeMs === undefined || (isAlive(Number.parseInt(token, 10)) && now - mtimeMs < staleMs)) return
  // Moved aside first: of two that break it at once, only one finds what it looked at.
  const aside = `${path}.${randomUUID()}`
  await rename(path, aside).catch(() => {})
  if ((await read(aside)) !== token) await rename(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

const read = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)

function isAlive(pid: number): boolean {
  // Between its creation and its first word a lock has no owner yet; its age tells.
  if (!Number.isInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

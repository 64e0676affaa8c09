import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

/** Holders write one small file. */
const patience = 5_000
const pauseMs = 20

/** Holds a file that exists while somebody writes, until disposed of. One that a dead process left behind is taken over. */
export async function lockFile(path: string, patienceMs = patience): Promise<AsyncDisposable> {
  const mine = `${process.pid} ${hostname()} ${randomBytes(6).toString('hex')}\n`
  const end = performance.now() + patienceMs
  while (!(await taken(path, mine))) {
    const held = await readFile(path, 'utf8').catch(() => '')
    if (isAbandoned(held)) await takeAway(path, held)
    else if (performance.now() > end) {
      throw new Error(
        `${path} says that process ${held.trim() || 'unknown'} is writing; if it is not, remove that file`,
      )
    } else await pause(pauseMs)
  }
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

/** Linked into place whole, so that nobody ever finds a lock without the name of its holder. */
async function taken(path: string, mine: string): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, mine, { flag: 'wx', mode: 0o600 })
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Only of processes on this machine can be told whether they live. */
function isAbandoned(held: string): boolean {
  const [pid, host] = held.split(' ')
  if (!/^\d+$/.test(pid ?? '') || host !== hostname()) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Moved aside first and looked at again: another one may have taken it over just before us, and is put back. */
async function takeAway(path: string, abandoned: string): Promise<void> {
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

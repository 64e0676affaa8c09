import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '../core/clock.ts'
import { pause } from '../core/deadline.ts'
import type { Log } from '../core/log.ts'
import { parseJson } from '../json/parse-json.ts'
import { asRecord } from '../lib/is-record.ts'
import { signalGroup } from './programs.ts'

/**
 * Ends orphaned server processes. Processes left behind when Toolway was killed are ended at the next start.
 * Processes that left their server's process group are ended soon after the server has ended.
 */
export interface OrphanReaper extends AsyncDisposable {
  /** Resolves when the orphans from earlier runs are gone; no server is started before that. Never rejects. */
  readonly reaped: Promise<void>
  register(): RegisteredProcess
}

export interface RegisteredProcess {
  /** Environment variables that mark the process and all its descendants. */
  readonly environment: Readonly<Record<string, string>>
  started(pid: number): void
  ended(): void
}

/** The variable that holds the mark. If a server's configuration overrides it, that server's orphans are not found. */
const markVariable = 'TOOLWAY_OWNER'
const gentlyMs = 2_000
const exitCheckMs = 50
/** How long to wait before scanning all processes, so that one scan (a few milliseconds) covers several servers. */
const sweepAfterMs = 1_000

/** Creates the reaper. It needs /proc; on other systems, it does nothing, and only process groups are ended. */
export function createOrphanReaper(folder: string, log: Log, clock: Clock = systemClock): OrphanReaper {
  const space = processSpace()
  const start = startTicks(process.pid)
  if (space === undefined || start === undefined) return idleReaper
  const owner = randomUUID()
  const file = join(folder, `${process.pid}-${start}-${owner}.json`)
  const children = new Map<number, ProcessId>()
  const strays = new Set<string>()
  /** The start of the first child. */
  let first = Number.POSITIVE_INFINITY
  let timer: Disposable | undefined
  let count = 0
  let sweeping = Promise.resolve()

  return {
    reaped: reap(folder, space, clock, log).catch((error) => {
      log.warn({ err: error }, 'could not search for orphaned processes from an earlier run')
    }),
    register() {
      const mark = `${owner}.${++count}`
      let child: ProcessId | undefined
      return {
        environment: { [markVariable]: mark },
        started(pid) {
          child = { pid, start: startTicks(pid) ?? '' }
          children.set(pid, child)
          first = Math.min(first, Number(child.start))
          record()
        },
        ended() {
          if (child) children.delete(child.pid)
          strays.add(mark)
          timer ??= clock.after(sweepAfterMs, () => {
            timer = undefined
            sweeping = sweeping.then(sweep).catch(() => {})
          })
        },
      }
    },
    async [Symbol.asyncDispose]() {
      timer?.[Symbol.dispose]()
      await sweeping
      if (count > 0) await end(await processesWith((value) => value.startsWith(owner), first), clock)
      await rm(file, { force: true }).catch(() => {})
    },
  }

  /** Writes the process ids to a file, in order to find orphans that have cleared the mark from their environment. */
  function record(): void {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      writeFileSync(file, JSON.stringify({ space, children: [...children.values()] }), { mode: 0o600 })
    } catch (error) {
      log.debug({ err: error }, 'could not record server process ids')
    }
  }

  async function sweep(): Promise<void> {
    const marks = new Set(strays)
    strays.clear()
    const found = await processesWith((value) => marks.has(value), first)
    if (found.length === 0) return
    log.debug({ processes: found.length }, 'ending processes that a stopped server left behind')
    await end(found, clock)
  }
}

const idleReaper: OrphanReaper = {
  reaped: Promise.resolve(),
  register: () => ({ environment: {}, started() {}, ended() {} }),
  async [Symbol.asyncDispose]() {},
}

interface ReaperRecord {
  readonly space?: string
  readonly children?: readonly ProcessId[]
}

/** Ends the orphans of gateways that have a record in this folder but are no longer running. */
async function reap(folder: string, space: string, clock: Clock, log: Log): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  await Promise.all(
    names.map(async (name) => {
      const [, pid, start, owner] = /^(\d+)-(\d+)-([\w-]{36})\.json$/.exec(name) ?? []
      if (pid === undefined || start === undefined || owner === undefined) return
      const file = join(folder, name)
      // If the record is truncated, the file name alone is enough to find the processes by their mark.
      const record = asRecord(parseJson(await readFile(file, 'utf8').catch(() => ''))) as ReaperRecord
      // Ignore records from another machine or container, whose process ids mean nothing here.
      const here = record.space === undefined || record.space === space
      if (here && isAlive({ pid: Number(pid), start })) return
      if (here) await endThoseOf(owner, record.children ?? [], clock, log)
      await rm(file, { force: true })
    }),
  )
}

async function endThoseOf(owner: string, children: readonly ProcessId[], clock: Clock, log: Log): Promise<void> {
  const leaders = children.filter(isAlive)
  const marked = await processesWith((value) => value.startsWith(owner), 0)
  const processes = new Set([...leaders, ...marked].map(({ pid }) => pid)).size
  if (processes === 0) return
  await end(marked, clock, leaders)
  log.warn({ processes }, 'ended server processes that were orphaned when Toolway was killed')
}

/** Ends processes with SIGTERM, then with SIGKILL. If a process leads a group, the signal goes to the whole group. */
async function end(processes: readonly ProcessId[], clock: Clock, leaders: readonly ProcessId[] = []): Promise<void> {
  const others = processes.filter(({ pid }) => pid !== process.pid)
  const signal = (name: 'SIGTERM' | 'SIGKILL'): void => {
    for (const { pid } of leaders.filter(isAlive)) signalGroup(pid, name)
    for (const { pid } of others.filter(isAlive)) {
      try {
        process.kill(pid, name)
      } catch {
        // The process has just ended.
      }
    }
  }
  signal('SIGTERM')
  for (let waited = 0; waited < gentlyMs; waited += exitCheckMs) {
    if (![...leaders, ...others].some(isAlive)) return
    await pause(clock, exitCheckMs)
  }
  signal('SIGKILL')
}

const living = new Set<number>()
let watching = false

/** Remembers a process group, so that the group is killed if Toolway exits without closing it. */
export function rememberGroup(leader: number): void {
  living.add(leader)
  if (watching) return
  watching = true
  process.once('exit', () => {
    for (const pid of living) signalGroup(pid, 'SIGKILL')
  })
}

/** Kills the remaining processes in the group of a process that has ended, and forgets the group. */
export function sweepGroup(leader: number): void {
  if (!living.delete(leader)) return
  if (process.platform !== 'win32') signalGroup(leader, 'SIGKILL')
}

/** A process id and its start time, because ids are reused. */
interface ProcessId {
  readonly pid: number
  /** The start time, in kernel ticks since boot. */
  readonly start: string
}

/** When a running process started; undefined for zombies and for processes that have ended. */
export function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The program name, in parentheses, may contain any characters, so count the fields after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return /[ZXx]/.test(fields[0] as string) ? undefined : fields[19]
  } catch {
    return undefined
  }
}

const isAlive = ({ pid, start }: ProcessId): boolean => startTicks(pid) === start

/** Identifies the scope in which process ids are valid: one boot of this machine, and the pid namespace. */
function processSpace(): string | undefined {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return undefined
  }
}

/** How many processes to look at before other work gets a turn. */
const processesPerTurn = 50

/** Finds this user's running processes that have a matching mark and did not start before `since`. */
async function processesWith(fits: (mark: string) => boolean, since: number): Promise<ProcessId[]> {
  const found: ProcessId[] = []
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  for (const [index, pid] of pids.entries()) {
    if (index % processesPerTurn === 0) await new Promise<void>((resolve) => setImmediate(resolve))
    // To read the environment takes many times as long, and may wait for the process.
    const start = startTicks(pid)
    if (start === undefined || Number(start) < since) continue
    // Skip processes that cannot be read: those of other users, and those that have just ended.
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    const setting = environment.split('\0').find((one) => one.startsWith(`${markVariable}=`))
    if (setting && fits(setting.slice(markVariable.length + 1)) && isAlive({ pid, start })) found.push({ pid, start })
  }
  return found
}

import type { Clock } from '../../core/clock.ts'
import { countValues } from '../../json/json-text.ts'

/**
 * Limits how much unrequested data is read from a server: notifications, and output outside the protocol. A server that
 * sends more has to wait, so that it does not delay calls to other servers.
 */
export interface ReadLimit {
  message(bytes: Buffer): void
  /** A line that is not a message, or a piece of one. */
  line(bytes: { readonly length: number }): void
  /** Bytes that cost nothing but reading them. */
  bytes(count: number): void
  /** Ends the limit: no more is coming. */
  end(): void
}

export const maxPerSecond = 16 * 1024 * 1024
/** What handling costs beyond the bytes, expressed in bytes: about 8,000 short messages or 64,000 short lines per second. */
const messageCost = 2 * 1024
const lineCost = 256
/** For messages with many values, which cost more to parse than their bytes: about 260,000 values per second. */
const valueCost = 64

/** A stream that used no more than this is read although the others of its server have used up their budget. */
const fairShare = maxPerSecond / 256
/** Pauses between the streams that continue: each of them delivers what it has buffered. */
const turnMs = 10
const maxTurns = 64

/** What all streams of one server use together, in the current second. */
export interface ReadBudget {
  second: number
  read: number
  /** The streams that are not read at the moment, with the one that has waited longest first. */
  readonly waiting: Set<() => void>
  timer: Disposable | undefined
}

export const createReadBudget = (): ReadBudget => ({ second: 0, read: 0, waiting: new Set(), timer: undefined })

/** Stops reading a source for the rest of a second in which too much has come from its server. `exceeded` is called once. */
export function createReadLimit(
  source: { pause(): void; resume(): void },
  clock: Clock,
  exceeded: () => void = () => {},
  budget: ReadBudget = createReadBudget(),
): ReadLimit {
  const { waiting } = budget
  let second = 0
  /** What was read in this second, or since the source continued in it. */
  let read = 0
  let over = false
  let reported = false

  const resume = (): void => {
    waiting.delete(resume)
    read = 0
    source.resume()
  }

  const add = (cost: number): void => {
    const isExceeded = hasExceeded(budget, clock, cost)
    if (second !== budget.second) read = 0
    second = budget.second
    read += cost
    if (read <= fairShare || over) return
    // While others wait, each continues with an equal share, so that none of them waits for long.
    if ((!isExceeded && read <= maxPerSecond / (waiting.size + 1)) || waiting.has(resume)) return
    source.pause()
    if (!reported) exceeded()
    reported = true
    waiting.add(resume)
    schedule(budget, clock)
  }

  return {
    message: (bytes) =>
      add(Math.max(bytes.length + messageCost, valueCost * countValues(bytes, maxPerSecond / valueCost))),
    line: ({ length }) => add(length + lineCost),
    bytes: add,
    end() {
      over = true
      if (!waiting.has(resume)) return
      resume()
      if (waiting.size === 0) stop(budget)
    },
  }
}

/** Adds a cost to the current second, and returns whether too much has come in it. */
function hasExceeded(budget: ReadBudget, clock: Clock, cost = 0): boolean {
  const current = Math.floor(clock.monotonic() / 1000)
  if (budget.second !== current) budget.read = 0
  budget.second = current
  budget.read += cost
  return budget.read > maxPerSecond
}

function schedule(budget: ReadBudget, clock: Clock): void {
  const ms = hasExceeded(budget, clock) ? 1000 - (clock.monotonic() % 1000) : turnMs
  budget.timer ??= clock.after(ms, () => resumeNext(budget, clock), { promptly: true })
}

function resumeNext(budget: ReadBudget, clock: Clock): void {
  const { waiting } = budget
  stop(budget)
  if (!hasExceeded(budget, clock)) {
    for (const resume of [...waiting].slice(0, Math.ceil(waiting.size / maxTurns))) resume()
  }
  if (waiting.size > 0) schedule(budget, clock)
}

function stop(budget: ReadBudget): void {
  budget.timer?.[Symbol.dispose]()
  budget.timer = undefined
}

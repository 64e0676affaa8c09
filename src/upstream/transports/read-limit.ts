import type { Clock } from '../../core/clock.ts'
import { countValues } from '../../lib/json-text.ts'

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
  /** How many streams are not read at the moment. */
  paused: number
  turns: number
}

export const createReadBudget = (): ReadBudget => ({ second: 0, read: 0, paused: 0, turns: 0 })

/** Stops reading a source for the rest of a second in which too much has come from its server. `exceeded` is called once. */
export function createReadLimit(
  source: { pause(): void; resume(): void },
  clock: Clock,
  exceeded: () => void = () => {},
  budget: ReadBudget = createReadBudget(),
): ReadLimit {
  let second = 0
  let read = 0
  let paused: Disposable | undefined
  let over = false
  let reported = false

  const isExceeded = (now: number): boolean => {
    const current = Math.floor(now / 1000)
    if (second !== current) read = 0
    if (budget.second !== current) budget.read = 0
    second = current
    budget.second = current
    return budget.read > maxPerSecond
  }

  const resume = (): void => {
    paused?.[Symbol.dispose]()
    paused = undefined
    budget.paused--
    source.resume()
  }

  const wait = (now: number): void => {
    const turn = budget.paused > 0 ? ++budget.turns % maxTurns : 0
    budget.paused++
    paused = clock.after(1000 - (now % 1000) + turn * turnMs, next, { promptly: true })
  }

  const next = (): void => {
    const now = clock.monotonic()
    if (isExceeded(now)) {
      budget.paused--
      wait(now)
    } else resume()
  }

  const add = (cost: number): void => {
    const now = clock.monotonic()
    isExceeded(now)
    read += cost
    budget.read += cost
    if (budget.read <= maxPerSecond || read <= fairShare || paused || over) return
    source.pause()
    if (!reported) exceeded()
    reported = true
    wait(now)
  }

  return {
    message: (bytes) =>
      add(Math.max(bytes.length + messageCost, valueCost * countValues(bytes, maxPerSecond / valueCost))),
    line: ({ length }) => add(length + lineCost),
    bytes: add,
    end() {
      over = true
      if (paused) resume()
    },
  }
}

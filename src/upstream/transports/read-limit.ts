import type { Clock } from '../../core/clock.ts'
import { countValues } from '../../json/json-text.ts'

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
  readonly waiting: Set<ReadLimit>
  timer: Disposable | undefined
}

export const createReadBudget = (): ReadBudget => ({ second: 0, read: 0, waiting: new Set(), timer: undefined })

/**
 * Limits how much unrequested data is read from a server: notifications, and output outside the protocol. A server that
 * sends more has to wait, so that it does not delay calls to other servers: its stream (`source`) is not read for the rest
 * of the second. `exceeded` is called once.
 */
export class ReadLimit {
  readonly #source: { pause(): void; resume(): void }
  readonly #clock: Clock
  readonly #exceeded: (() => void) | undefined
  readonly #budget: ReadBudget
  #second = 0
  /** What was read in this second, or since the source continued in it. */
  #read = 0
  #isOver = false
  #isReported = false

  constructor(
    source: { pause(): void; resume(): void },
    clock: Clock,
    exceeded?: () => void,
    budget: ReadBudget = createReadBudget(),
  ) {
    this.#source = source
    this.#clock = clock
    this.#exceeded = exceeded
    this.#budget = budget
  }

  message(bytes: Buffer): void {
    this.bytes(Math.max(bytes.length + messageCost, valueCost * countValues(bytes, maxPerSecond / valueCost)))
  }

  /** A line that is not a message, or a piece of one. */
  line({ length }: { readonly length: number }): void {
    this.bytes(length + lineCost)
  }

  /** Bytes that cost nothing but reading them. */
  bytes(cost: number): void {
    const budget = this.#budget
    const { waiting } = budget
    const isExceeded = hasExceeded(budget, this.#clock, cost)
    if (this.#second !== budget.second) this.#read = 0
    this.#second = budget.second
    this.#read += cost
    if (this.#read <= fairShare || this.#isOver) return
    // While others wait, each continues with an equal share, so that none of them waits for long.
    if ((!isExceeded && this.#read <= maxPerSecond / (waiting.size + 1)) || waiting.has(this)) return
    this.#source.pause()
    if (!this.#isReported) this.#exceeded?.()
    this.#isReported = true
    waiting.add(this)
    schedule(budget, this.#clock)
  }

  /** Ends the limit: no more is coming. */
  end(): void {
    this.#isOver = true
    if (!this.#budget.waiting.has(this)) return
    this.resume()
    if (this.#budget.waiting.size === 0) stop(this.#budget)
  }

  resume(): void {
    this.#budget.waiting.delete(this)
    this.#read = 0
    this.#source.resume()
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
    for (const limit of [...waiting].slice(0, Math.ceil(waiting.size / maxTurns))) limit.resume()
  }
  if (waiting.size > 0) schedule(budget, clock)
}

function stop(budget: ReadBudget): void {
  budget.timer?.[Symbol.dispose]()
  budget.timer = undefined
}

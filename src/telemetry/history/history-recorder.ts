import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import type { HistoryBatch, HistoryStore, StoredCapture, Tally, TallyCounts, TallyKey } from '../../core/history.ts'
import type { BudgetUse } from '../../core/limits/budget.ts'
import { type Observed, type Observer, statisticsOperation } from '../../core/observer.ts'
import { latencyBucket } from '../../lib/latency-histogram.ts'
import { type CallRecord, storedCall } from '../calls/call-records.ts'
import { other, safeRedact } from '../metrics/family.ts'
import { count, noCounts } from '../stats/stats.ts'

export interface HistoryRecorderOptions {
  readonly store: Pick<HistoryStore, 'write'>
  readonly clock: Clock
  redact(text: string): string
  /** What was captured of these calls, encrypted. */
  captured?(ids: readonly string[]): Promise<readonly StoredCapture[]>
  /** Max number of calls that wait to be written, in all and of one agent. Further calls are only counted. */
  readonly maxCalls?: number
  readonly maxCallsPerAgent?: number
  /** Max number of tallies per step. Further agents and tools count as `other`. */
  readonly maxTallies?: number
}

/** The finest step that is stored. */
const stepMs = 10_000
/** A process that is killed loses what happened within this time. */
const writeEveryMs = 2_000
/** Max number of steps that wait while the store cannot be written. */
const maxSteps = 30

/** A tally that is counted. Latencies are sparse, because most tallies have few calls per step. */
interface OpenTally extends TallyKey {
  readonly counts: TallyCounts
  readonly latencies: Map<number, number>
}

interface Step {
  readonly at: number
  /** By tool, or by server for other operations: entries of resources may be made for one call. */
  readonly tallies: Map<Entry | string, Map<string, OpenTally>>
  size: number
  other: OpenTally | undefined
}

/**
 * Collects what the history stores. During a call it only counts and adds a reference to a list; names are redacted and
 * batches written every two seconds. Without calls, no timer runs.
 */
export class HistoryRecorder implements AsyncDisposable {
  readonly observer: Observer = { ended: (observed) => this.#count(observed) }
  readonly #options: HistoryRecorderOptions
  readonly #maxCalls: number
  readonly #maxCallsPerAgent: number
  readonly #redact: (text: string) => string
  #steps: Step[] = []
  #step: Step | undefined
  #calls: CallRecord[] = []
  #waiting = new Map<string, number>()
  #refused = 0
  #timer: Disposable | undefined
  #writing: Promise<void> | undefined

  constructor(options: HistoryRecorderOptions) {
    this.#options = options
    this.#maxCalls = options.maxCalls ?? 4_000
    this.#maxCallsPerAgent = options.maxCallsPerAgent ?? 3_000
    this.#redact = safeRedact(options.redact)
  }

  /** Adds a call that has ended to those that are written next. */
  add(call: CallRecord): void {
    const ofAgent = this.#waiting.get(call.agent) ?? 0
    if (this.#calls.length >= this.#maxCalls || ofAgent >= this.#maxCallsPerAgent) {
      this.#refused++
      return
    }
    this.#waiting.set(call.agent, ofAgent + 1)
    this.#calls.push(call)
    if (this.#timer === undefined) this.#schedule()
  }

  /** Resolves when everything recorded so far is written or lost. Writes one batch at a time. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined
      if (this.#steps.length > 0 || this.#calls.length > 0) this.#schedule()
    })
    await this.#writing
  }

  /** The calls that wait. `refused` counts those that were not stored. */
  use(): Omit<BudgetUse, 'name'> {
    return {
      used: this.#calls.length,
      limit: this.#maxCalls,
      perCaller: this.#maxCallsPerAgent,
      largest: Math.max(0, ...this.#waiting.values()),
      refused: this.#refused,
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.flush()
  }

  #count({ call, operation, ms, outcome, trail }: Observed): void {
    const at = Math.floor(this.#options.clock.now() / stepMs) * stepMs
    const step = this.#step?.at === at ? this.#step : this.#turnTo(at)
    const { counts, latencies } = this.#tallyOf(step, call, operation)
    if (count(counts, outcome.kind, trail.cache, ms)) {
      const bucket = latencyBucket(ms)
      latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1)
    }
    if (this.#timer === undefined) this.#schedule()
  }

  #tallyOf(step: Step, { caller: { agent }, entry }: Call, operation: string): OpenTally {
    const isTool = operation === 'call_tool'
    const key = isTool ? agent : `${operation} ${agent}`
    const what = isTool ? entry : entry.server
    const ofEntry = step.tallies.get(what)
    const known = ofEntry?.get(key)
    if (known) return known
    if (step.size >= (this.#options.maxTallies ?? 2_000)) {
      step.other ??= openTally({ agent: other, server: other, operation: other, name: '' })
      return step.other
    }
    step.size++
    const made = openTally({
      ...{ agent, server: entry.server, name: isTool ? entry.name : '' },
      operation: statisticsOperation(operation, entry.server, entry.name),
    })
    if (ofEntry) ofEntry.set(key, made)
    else step.tallies.set(what, new Map([[key, made]]))
    return made
  }

  #turnTo(at: number): Step {
    const next: Step = { at, tallies: new Map(), size: 0, other: undefined }
    this.#steps.push(next)
    if (this.#steps.length > maxSteps) this.#steps.shift()
    this.#step = next
    return next
  }

  #take(): Omit<HistoryBatch, 'captures'> {
    const redact = this.#redact
    const batch = {
      tallies: this.#steps.flatMap(({ at, tallies, other: rest }) =>
        [...[...tallies.values()].flatMap((some) => [...some.values()]), ...(rest ? [rest] : [])].map((tally) =>
          closeTally(at, tally, redact),
        ),
      ),
      calls: this.#calls.map((call) => storedCall(call, redact)),
    }
    this.#steps = []
    this.#step = undefined
    this.#calls = []
    this.#waiting = new Map()
    return batch
  }

  async #write(): Promise<void> {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    const { length } = this.#calls
    if (this.#steps.length === 0 && length === 0) return
    // Keep no reference to the batch while it is written.
    if (!(await this.#options.store.write(await this.#withCaptures(this.#take())))) this.#refused += length
  }

  async #withCaptures(batch: Omit<HistoryBatch, 'captures'>): Promise<HistoryBatch> {
    return { ...batch, captures: (await this.#options.captured?.(batch.calls.map(({ id }) => id))) ?? [] }
  }

  /** While the store is slow, the next batch grows up to its bounds. */
  #schedule(): void {
    if (this.#writing === undefined) this.#timer ??= this.#options.clock.after(writeEveryMs, () => void this.flush())
  }
}

const openTally = (key: TallyKey): OpenTally => ({ ...key, counts: noCounts(), latencies: new Map() })

function closeTally(at: number, { latencies, ...tally }: OpenTally, redact: (text: string) => string): Tally {
  return {
    at,
    counts: tally.counts,
    agent: redact(tally.agent),
    server: redact(tally.server),
    operation: redact(tally.operation),
    name: redact(tally.name),
    latencies: [...latencies].flat(),
  }
}

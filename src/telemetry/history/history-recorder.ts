import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import type { HistoryBatch, HistoryStore, StoredCapture, Tally, TallyCounts, TallyKey } from '../../core/history.ts'
import type { BudgetUse } from '../../core/limits/budget.ts'
import { type Observer, statisticsOperation } from '../../core/observer.ts'
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

export interface HistoryRecorder extends AsyncDisposable {
  readonly observer: Observer
  /** Adds a call that has ended to those that are written next. */
  add(call: CallRecord): void
  /** Resolves when everything recorded so far is written or lost. */
  flush(): Promise<void>
  /** The calls that wait. `refused` counts those that were not stored. */
  use(): Omit<BudgetUse, 'name'>
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
export function createHistoryRecorder(options: HistoryRecorderOptions): HistoryRecorder {
  const { store, clock, maxCalls = 4_000, maxCallsPerAgent = 3_000, maxTallies = 2_000 } = options
  const redact = safeRedact(options.redact)
  let steps: Step[] = []
  let step: Step | undefined
  let calls: CallRecord[] = []
  let waiting = new Map<string, number>()
  let refused = 0
  let timer: Disposable | undefined
  let writing: Promise<void> | undefined

  const tallyOf = (current: Step, { caller: { agent }, entry }: Call, operation: string): OpenTally => {
    const isTool = operation === 'call_tool'
    const key = isTool ? agent : `${operation} ${agent}`
    const what = isTool ? entry : entry.server
    const ofEntry = current.tallies.get(what)
    const known = ofEntry?.get(key)
    if (known) return known
    if (current.size >= maxTallies) {
      current.other ??= openTally({ agent: other, server: other, operation: other, name: '' })
      return current.other
    }
    current.size++
    const made = openTally({
      ...{ agent, server: entry.server, name: isTool ? entry.name : '' },
      operation: statisticsOperation(operation, entry.server, entry.name),
    })
    if (ofEntry) ofEntry.set(key, made)
    else current.tallies.set(what, new Map([[key, made]]))
    return made
  }

  const turnTo = (at: number): Step => {
    const next: Step = { at, tallies: new Map(), size: 0, other: undefined }
    steps.push(next)
    if (steps.length > maxSteps) steps.shift()
    step = next
    return next
  }

  const take = (): Omit<HistoryBatch, 'captures'> => {
    const batch = {
      tallies: steps.flatMap(({ at, tallies, other: rest }) =>
        [...[...tallies.values()].flatMap((some) => [...some.values()]), ...(rest ? [rest] : [])].map((tally) =>
          closed(at, tally, redact),
        ),
      ),
      calls: calls.map((call) => storedCall(call, redact)),
    }
    steps = []
    step = undefined
    calls = []
    waiting = new Map()
    return batch
  }

  const withCaptures = async (batch: Omit<HistoryBatch, 'captures'>): Promise<HistoryBatch> => ({
    ...batch,
    captures: (await options.captured?.(batch.calls.map(({ id }) => id))) ?? [],
  })

  const write = async () => {
    timer?.[Symbol.dispose]()
    timer = undefined
    if (steps.length === 0 && calls.length === 0) return
    const { length } = calls
    // Keep no reference to the batch while it is written.
    if (!(await store.write(await withCaptures(take())))) refused += length
  }

  /** Writes one batch at a time: while the store is slow, the next one grows up to its bounds. */
  const flush = async (): Promise<void> => {
    while (writing) await writing
    writing = write().finally(() => {
      writing = undefined
      if (steps.length > 0 || calls.length > 0) schedule()
    })
    await writing
  }

  const schedule = () => {
    if (writing === undefined) timer ??= clock.after(writeEveryMs, () => void flush())
  }

  return {
    observer: {
      ended({ call, operation, ms, outcome, trail }) {
        const at = Math.floor(clock.now() / stepMs) * stepMs
        const current = step?.at === at ? step : turnTo(at)
        const { counts, latencies } = tallyOf(current, call, operation)
        if (count(counts, outcome.kind, trail.cache, ms)) {
          const bucket = latencyBucket(ms)
          latencies.set(bucket, (latencies.get(bucket) ?? 0) + 1)
        }
        if (timer === undefined) schedule()
      },
    },
    add(call) {
      const ofAgent = waiting.get(call.agent) ?? 0
      if (calls.length >= maxCalls || ofAgent >= maxCallsPerAgent) {
        refused++
        return
      }
      waiting.set(call.agent, ofAgent + 1)
      calls.push(call)
      if (timer === undefined) schedule()
    },
    flush,
    use: () => ({
      used: calls.length,
      limit: maxCalls,
      perCaller: maxCallsPerAgent,
      largest: Math.max(0, ...waiting.values()),
      refused,
    }),
    [Symbol.asyncDispose]: flush,
  }
}

const openTally = (key: TallyKey): OpenTally => ({ ...key, counts: noCounts(), latencies: new Map() })

function closed(at: number, { latencies, ...tally }: OpenTally, redact: (text: string) => string): Tally {
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

import type { CallChoices, CallFilter, CallPageQuery } from './call-query.ts'
import type { Kind } from './entry.ts'

/** What a tally counts: calls of one agent with one operation. `name` is set for tool calls only. */
export interface TallyKey {
  readonly agent: string
  readonly server: string
  readonly operation: string
  readonly name: string
}

/** The numbers of a tally, in the order in which they are stored. `telemetry/stats` defines what each one counts. */
export const tallyNumbers = [
  'calls',
  'errors',
  'toolErrors',
  'denials',
  'cacheHits',
  'cacheMisses',
  'sumMs',
  'hitMs',
] as const

export type TallyCounts = Record<(typeof tallyNumbers)[number], number>

/** Calls that ended during the step that began at `at`. */
export interface Tally extends TallyKey {
  readonly at: number
  readonly counts: Readonly<TallyCounts>
  /** The latencies as pairs of bucket and count. */
  readonly latencies: readonly number[]
}

/** A finished call, with names from which secrets were removed. */
export interface StoredCall {
  readonly id: string
  readonly parent: string | null
  readonly at: number
  readonly ms: number
  readonly agent: string
  readonly principal: string
  readonly operation: string
  readonly server: string
  readonly name: string
  readonly outcome: 'answered' | 'tool_error' | 'denied' | 'failed'
  readonly code: string | null
  readonly cache: 'hit' | 'miss' | 'joined' | null
  readonly steps: readonly StoredStep[]
}

/**
 * A step of a call, as it is stored: the time from the start of the call to the start of the step, and its duration,
 * which is null if it did not end.
 */
export type StoredStep = readonly [name: string, startMs: number, ms: number | null, error: string | null]

/** Selects calls. `from` is inclusive, `to` exclusive. */
export interface HistoryFilter {
  readonly from: number
  readonly to: number
  readonly agent?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
}

export interface StoredCalls {
  readonly calls: readonly StoredCall[]
  /** The number of calls that match, on all pages. */
  readonly total: number
}

/** The members of a tally's key that a query can require. */
export const tallyFilters = ['agent', 'server', 'name', 'operation'] as const

/** The members of a tally's key that form the name of a group, joined by a dot. */
export const tallyGroups = {
  agent: ['agent'],
  server: ['server'],
  operation: ['operation'],
  'agent-operation': ['agent', 'operation'],
  tool: ['server', 'name'],
} as const

/** How to add up tallies: by one member of their keys or all together, and over the whole range or in steps. */
export interface TallyQuery extends HistoryFilter {
  readonly by?: keyof typeof tallyGroups | undefined
  /** Without it, each group is one sum over the whole range. */
  readonly maxSteps?: number | undefined
}

export interface TallySum {
  /** The name of the group; empty if everything is added up. A tool is named `server.tool`. */
  readonly group: string
  readonly at: number
  readonly counts: Readonly<TallyCounts>
  readonly latencies: Uint32Array
}

export interface TallySums {
  /** When the oldest tally that is kept began. */
  readonly since: number
  readonly stepMs: number
  readonly sums: readonly TallySum[]
  /** When processes ran, as far as they have recorded calls. */
  readonly runs: readonly Run[]
}

export type Run = readonly [startedAt: number, seenAt: number]

const secondMs = 1000
const tallyMinuteMs = 60 * secondMs
const tallyHourMs = 60 * tallyMinuteMs
const tallyDayMs = 24 * tallyHourMs

/** Tallies are kept in steps of several lengths, the finest for the shortest time. The last one is kept for `keep`. */
export const tallyResolutions = [
  { stepMs: 10 * secondMs, keptMs: 3 * tallyHourMs },
  { stepMs: tallyMinuteMs, keptMs: 2 * tallyDayMs },
  { stepMs: tallyHourMs, keptMs: Number.POSITIVE_INFINITY },
] as const

/** When the oldest tally began, as exactly as is known. `oldest` has one time for each resolution that has tallies. */
export function oldestTally(oldest: readonly number[]): number | undefined {
  const first = Math.min(...oldest)
  return oldest.find((at) => at < first + tallyHourMs)
}

/** Which tallies answer a query: those of `stepMs` that began at `first` or later, added up to steps of `width`. */
export function tallySteps({ from, to, maxSteps }: TallyQuery, since: number, now: number) {
  const kept = Math.max(from, since)
  const { stepMs } = tallyResolutions.find(({ keptMs }) => kept >= now - keptMs) ?? tallyResolutions[2]
  const factor = maxSteps === undefined ? 1 : Math.max(1, Math.ceil((to - from) / stepMs / maxSteps))
  const width = stepMs * factor
  return { stepMs, width, first: Math.floor(from / width) * width }
}

/** How many sign-ins are kept, of one principal and in all. */
export const maxLoginsOfOne = 16
export const maxLogins = 1_000

/** A captured call, encrypted. */
export interface StoredCapture {
  readonly id: string
  readonly at: number
  readonly sealed: string
}

export interface HistoryBatch {
  readonly tallies: readonly Tally[]
  readonly calls: readonly StoredCall[]
  readonly captures: readonly StoredCapture[]
}

/**
 * What outlives the process: statistics, calls and logins. Nothing here throws or rejects. While the store cannot be
 * used, writing loses the batch, and reading resolves with undefined.
 */
export interface HistoryStore extends AsyncDisposable {
  /** Resolves with false if the batch was lost. */
  write(batch: HistoryBatch): Promise<boolean>
  sums(query: TallyQuery): Promise<TallySums | undefined>
  calls(query: CallPageQuery): Promise<StoredCalls | undefined>
  /** The values that calls in a range have, sorted. */
  choices(filter: CallFilter): Promise<CallChoices | undefined>
  /** A call and the calls that it caused, oldest first. */
  call(id: string): Promise<{ readonly call: StoredCall; readonly children: readonly StoredCall[] } | undefined>
  /** What was captured of a call that began at or after `since`, encrypted. */
  capture(id: string, since: number): Promise<string | undefined>
  readonly logins: LoginStore
}

/** Logins of browsers. The store sees neither their ids nor their credentials. */
export interface LoginStore {
  /** `digest` identifies the login, `owner` its principal. Resolves with true if the login outlives this process. */
  add(login: StoredLogin): Promise<boolean>
  /** Null if there is no such login; undefined if the store cannot be used. */
  find(digest: string): Promise<StoredLogin | null | undefined>
  remove(digest: string): Promise<void>
}

export interface StoredLogin {
  readonly digest: string
  readonly owner: string
  /** The credential and rights, encrypted. */
  readonly sealed: string
  /** When the login ends, in milliseconds since the epoch. */
  readonly until: number
}

/** A captured JSON value as text, redacted. If it was cut, the text is only the beginning of the JSON. */
export interface CapturedText {
  readonly text: string
  /** The size of the original in bytes. */
  readonly bytes: number
  readonly truncated: boolean
  /** Whether something in it was redacted. If neither this nor `truncated`, the text has the caller's own bytes. */
  readonly redacted: boolean
}

export interface CapturedProgress {
  /** The time since the start of the call. */
  readonly ms: number
  readonly progress: number | null
  readonly total: number | null
  readonly message: string | null
}

/** The content of a call: what was sent and received. Everything in it is redacted, except names needed to repeat it. */
export interface CapturedCall {
  readonly id: string
  /** When the call began, in milliseconds since the epoch. */
  readonly at: number
  /** Whose share of the store the call uses. */
  readonly principal: string
  readonly agent: string
  readonly kind: Kind
  readonly server: string
  readonly name: string
  readonly uri: string | undefined
  readonly arguments: CapturedText
  /** Undefined while the call is running, and if it failed. */
  readonly result: CapturedText | undefined
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly progress: readonly CapturedProgress[]
  readonly droppedProgress: number
}

/** Keeps captured calls, bounded per caller and in all, and by age. The oldest are dropped first. */
export interface CaptureStore {
  /** Adds a call, or replaces the one with the same id. */
  put(call: CapturedCall): void
  find(id: string): CapturedCall | undefined
}

/** Conditions that a call must meet. */
export interface CallFilter {
  readonly agent?: string | undefined
  /** The agents whose calls may be seen; undefined for all. */
  readonly agents?: readonly string[] | undefined
  readonly principal?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
  readonly outcome?: string | undefined
  readonly code?: string | undefined
  readonly parent?: string | undefined
  /** Calls that took at least this many milliseconds. Running calls have no duration yet and never match. */
  readonly slowerThan?: number | undefined
  /** Calls that began at or after this time, and before `to`. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  /** Text that a name, the ID or the code must contain. Case is ignored. */
  readonly text?: string | undefined
}

/** The members of a call that must equal those of a filter. */
export const callFilters = ['agent', 'principal', 'server', 'name', 'operation', 'outcome', 'code', 'parent'] as const

export const callOrders = ['time', 'target', 'agent', 'outcome', 'cache', 'duration'] as const

export interface CallOrder {
  readonly by: (typeof callOrders)[number]
  readonly descending: boolean
}

/** The place of a call in an order. Calls with equal values are ordered by id. */
export type CallPosition = readonly [value: string | number, id: string]

export interface CallPageQuery extends CallFilter {
  readonly order: CallOrder
  /** The call that the page follows; undefined for the first page. */
  readonly after?: CallPosition | undefined
  readonly limit: number
  /** Calls that `total` leaves out: they match, but are counted in memory already. */
  readonly counted: readonly string[]
}

/** The members of calls whose values filters offer. */
const choiceNames = ['agent', 'server', 'name', 'operation', 'code'] as const

/** The values that calls have. */
export type CallChoices = Readonly<Record<(typeof choiceNames)[number], readonly string[]>>

export const mapChoices = (valuesOf: (name: keyof CallChoices) => readonly string[]): CallChoices =>
  Object.fromEntries(choiceNames.map((name) => [name, valuesOf(name)])) as CallChoices

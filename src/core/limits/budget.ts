import { ToolwayError } from '../errors.ts'

/** How much of a budget is in use. `largest` is the use of the caller that uses most of it. */
export interface BudgetUse {
  readonly name: string
  readonly used: number
  readonly limit: number
  readonly perCaller: number
  readonly largest: number
  /** How often something was refused, ended or dropped because the budget was used up. */
  readonly refused: number
}

export interface BudgetLimits {
  /** What is counted, in the plural, for error messages. */
  readonly what: string
  readonly limit: number
  /** Less than `limit`, so that no caller can use up all of it. */
  readonly perCaller: number
}

/** The bound that was reached: the caller's own, or the one for all callers. */
type ReachedBound = 'caller' | 'all'

const overloadRetryMs = 1_000

/** A bounded amount of something that waits or is kept, such as requests, streams or bytes, with a share per caller. */
export class Budget implements BudgetLimits {
  readonly name: string
  readonly what: string
  limit: number
  perCaller: number
  readonly #callers = new Map<string, number>()
  #used = 0
  #refused = 0

  constructor(name: string, { what, limit, perCaller }: BudgetLimits) {
    this.name = name
    this.what = what
    this.limit = limit
    this.perCaller = perCaller
  }

  get used(): number {
    return this.#used
  }

  usedBy(caller: string): number {
    return this.#callers.get(caller) ?? 0
  }

  /** Takes an amount, to be given back later. If a bound is reached, takes nothing and returns that bound. */
  take(caller: string, amount = 1): ReachedBound | undefined {
    const own = (this.#callers.get(caller) ?? 0) + amount
    if (own > this.perCaller || this.#used + amount > this.limit) {
      this.#refused++
      return own > this.perCaller ? 'caller' : 'all'
    }
    this.add(caller, amount)
    return undefined
  }

  /** The same, but throws OVERLOADED if a bound is reached. */
  claim(caller: string, amount = 1): void {
    const reached = this.take(caller, amount)
    if (reached) throw usedUp(this, reached)
  }

  /** Throws OVERLOADED if `claim` would. */
  check(caller: string, amount = 1): void {
    this.claim(caller, amount)
    this.give(caller, amount)
  }

  give(caller: string | undefined, amount = 1): void {
    this.add(caller, -amount)
  }

  /**
   * Counts an amount without checking the bounds, without a caller for all only. Then as much must be freed as exceeds
   * the bounds.
   */
  add(caller: string | undefined, amount: number): void {
    this.#used += amount
    if (caller === undefined) return
    const own = (this.#callers.get(caller) ?? 0) + amount
    if (own > 0) this.#callers.set(caller, own)
    else this.#callers.delete(caller)
  }

  /** Changes the bounds. What exceeds them stays in use. */
  resize(limit: number, perCaller: number): void {
    this.limit = limit
    this.perCaller = perCaller
  }

  /** Records that something was ended or dropped to stay within the bounds. */
  shed(): void {
    this.#refused++
  }

  use(): BudgetUse {
    const { name, limit, perCaller } = this
    const largest = Math.max(0, ...this.#callers.values())
    return { name, used: this.#used, limit, perCaller, largest, refused: this.#refused }
  }
}

/** The error for something that a budget has no room for. */
function usedUp({ what, limit, perCaller }: Budget, reached: ReachedBound): ToolwayError {
  const sentence =
    reached === 'caller'
      ? `You have reached the limit of ${perCaller} ${what} per caller: end some of them, or try again later.`
      : `All callers together have reached the limit of ${limit} ${what}: try again later.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs: overloadRetryMs })
}

const mebibyte = 1024 * 1024

/**
 * Budgets whose bounds are fixed; docs/operations/overload.md lists them all. One caller's requests and streams together
 * are fewer than the connections that one address may have.
 */
export const fixedBudgets = {
  requests: { what: 'requests in flight', limit: 4_096, perCaller: 768 },
  response_bytes: { what: 'unread bytes of responses', limit: 256 * mebibyte, perCaller: 64 * mebibyte },
  stored_bytes: { what: 'bytes of messages for later delivery', limit: 64 * mebibyte, perCaller: 16 * mebibyte },
  sessions: { what: 'sessions', limit: 10_000, perCaller: 5_000 },
  streams: { what: 'open streams', limit: 4_096, perCaller: 768 },
  subscriptions: { what: 'subscriptions', limit: 20_000, perCaller: 10_000 },
  questions: { what: 'calls and questions that wait for input from the client', limit: 2_000, perCaller: 500 },
  question_bytes: {
    what: 'bytes of calls and questions that wait for input',
    limit: 128 * mebibyte,
    perCaller: 32 * mebibyte,
  },
  approvals: { what: "calls that wait for a person's approval", limit: 256, perCaller: 64 },
  tasks: { what: 'tasks', limit: 4_000, perCaller: 1_000 },
  results: { what: 'whole results of calls that were cut', limit: 2_000, perCaller: 500 },
  result_bytes: { what: 'bytes of such results', limit: 128 * mebibyte, perCaller: 32 * mebibyte },
  chat_answers: { what: 'chat answers in progress', limit: 256, perCaller: 128 },
  dashboards: { what: 'open dashboards', limit: 64, perCaller: 48 },
  model_requests: { what: 'requests to models that run in this process', limit: 64, perCaller: 12 },
} satisfies Record<string, BudgetLimits>

type FixedBudget = keyof typeof fixedBudgets

/** All budgets of a gateway: those with fixed bounds, and those that other components count themselves. */
export interface Budgets extends Readonly<Record<FixedBudget, Budget>> {
  /** Adds a budget that is counted elsewhere. Replaces an earlier one with the same name. */
  register(name: string, use: () => Omit<BudgetUse, 'name'>): void
  report(): readonly BudgetUse[]
}

export function createBudgets(): Budgets {
  const own = Object.fromEntries(
    Object.entries(fixedBudgets).map(([name, limits]) => [name, new Budget(name, limits)]),
  ) as Record<FixedBudget, Budget>
  const registered = new Map<string, () => Omit<BudgetUse, 'name'>>()
  return {
    ...own,
    register: (name, use) => void registered.set(name, use),
    report: () => [
      ...[...registered].map(([name, use]) => ({ name, ...use() })),
      ...Object.values(own).map((budget) => budget.use()),
    ],
  }
}

import type { Clock } from './clock.ts'
import { ToolwayError } from './errors.ts'

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

/** A bounded amount of something that waits or is kept, such as requests, streams or bytes. */
export interface Budget extends BudgetLimits {
  readonly used: number
  usedBy(caller: string): number
  /** Takes an amount, to be given back later. If a bound is reached, takes nothing and returns that bound. */
  take(caller: string, amount?: number): ReachedBound | undefined
  /** The same, but throws OVERLOADED if a bound is reached. */
  claim(caller: string, amount?: number): void
  /** Throws OVERLOADED if `claim` would. */
  check(caller: string, amount?: number): void
  give(caller: string, amount?: number): void
  /** Counts an amount without checking the bounds. The caller must then free as much as exceeds them. */
  add(caller: string, amount: number): void
  /** Records that something was ended or dropped to stay within the bounds. */
  shed(): void
  use(): BudgetUse
}

const MiB = 1024 * 1024

/**
 * Budgets whose bounds are fixed. docs/operations.md lists them all, with the order in which they are shed. One caller's
 * requests and streams together are fewer than the connections that one address may have.
 */
const fixed = {
  requests: { what: 'requests in flight', limit: 4_096, perCaller: 768 },
  response_bytes: { what: 'unread bytes of responses', limit: 256 * MiB, perCaller: 64 * MiB },
  stored_bytes: { what: 'bytes of messages for later delivery', limit: 64 * MiB, perCaller: 16 * MiB },
  sessions: { what: 'sessions', limit: 10_000, perCaller: 5_000 },
  streams: { what: 'open streams', limit: 4_096, perCaller: 768 },
  subscriptions: { what: 'subscriptions', limit: 20_000, perCaller: 10_000 },
  questions: { what: 'calls and questions that wait for input from the client', limit: 2_000, perCaller: 500 },
  question_bytes: { what: 'bytes of calls and questions that wait for input', limit: 128 * MiB, perCaller: 32 * MiB },
  approvals: { what: "calls that wait for a person's approval", limit: 256, perCaller: 64 },
  tasks: { what: 'tasks', limit: 4_000, perCaller: 1_000 },
  chat_answers: { what: 'chat answers in progress', limit: 256, perCaller: 128 },
  dashboards: { what: 'open dashboards', limit: 64, perCaller: 48 },
  model_requests: { what: 'requests to models that run in this process', limit: 64, perCaller: 12 },
  client_capabilities: { what: 'different sets of client capabilities in 10 minutes', limit: 1_024, perCaller: 16 },
} satisfies Record<string, BudgetLimits>

type FixedBudget = keyof typeof fixed

/** All budgets of a gateway: those with fixed bounds, and those that other components count themselves. */
export interface Budgets extends Readonly<Record<FixedBudget, Budget>> {
  /** Adds a budget that is counted elsewhere. Replaces an earlier one with the same name. */
  register(name: string, use: () => Omit<BudgetUse, 'name'>): void
  report(): readonly BudgetUse[]
}

export function createBudgets(): Budgets {
  const own = Object.fromEntries(
    Object.entries(fixed).map(([name, limits]) => [name, createBudget(name, limits)]),
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

export function createBudget(name: string, { what, limit, perCaller }: BudgetLimits): Budget {
  const callers = new Map<string, number>()
  let used = 0
  let refused = 0

  const usedBy = (caller: string): number => callers.get(caller) ?? 0

  const reachedBy = (caller: string, amount: number): ReachedBound | undefined => {
    if (usedBy(caller) + amount > perCaller) return 'caller'
    return used + amount > limit ? 'all' : undefined
  }

  const add = (caller: string, amount: number) => {
    const own = usedBy(caller) + amount
    used += amount
    if (own > 0) callers.set(caller, own)
    else callers.delete(caller)
  }

  const budget: Budget = {
    what,
    limit,
    perCaller,
    get used() {
      return used
    },
    usedBy,
    take(caller, amount = 1) {
      const reached = reachedBy(caller, amount)
      if (reached) refused++
      else add(caller, amount)
      return reached
    },
    claim(caller, amount = 1) {
      budget.check(caller, amount)
      add(caller, amount)
    },
    check(caller, amount = 1) {
      const reached = reachedBy(caller, amount)
      if (!reached) return
      refused++
      throw usedUp(budget, reached)
    },
    give: (caller, amount = 1) => add(caller, -amount),
    add,
    shed: () => void refused++,
    use() {
      let largest = 0
      for (const own of callers.values()) largest = Math.max(largest, own)
      return { name, used, limit, perCaller, largest, refused }
    },
  }
  return budget
}

/**
 * Counts things by their use: each one counts against the budget until it has not been used for `keepMs`. Returns a
 * function that throws OVERLOADED if a caller uses one more than the bounds allow.
 */
export function createRecentUses(budget: Budget, keepMs: number, clock: Pick<Clock, 'monotonic'>) {
  /** When each caller last used each thing. */
  const callers = new Map<string, Map<string, number>>()

  const forgetOld = (now: number) => {
    for (const [caller, uses] of callers) {
      for (const [thing, at] of uses) if (now - at >= keepMs && uses.delete(thing)) budget.give(caller)
      if (uses.size === 0) callers.delete(caller)
    }
  }

  return (caller: string, thing: string): void => {
    const now = clock.monotonic()
    if (callers.get(caller)?.has(thing) !== true) {
      forgetOld(now)
      budget.claim(caller)
    }
    const uses = callers.get(caller) ?? new Map<string, number>()
    callers.set(caller, uses.set(thing, now))
  }
}

const retryAfterMs = 1_000

/** The error for something that a budget has no room for. */
function usedUp({ what, limit, perCaller }: BudgetLimits, reached: ReachedBound): ToolwayError {
  const sentence =
    reached === 'caller'
      ? `You have reached the limit of ${perCaller} ${what} per caller: end some of them, or try again later.`
      : `All callers together have reached the limit of ${limit} ${what}: try again later.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
}

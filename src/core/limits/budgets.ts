import { Budget, type BudgetLimits, type BudgetUse } from './budget.ts'

const MiB = 1024 * 1024

/**
 * Budgets whose bounds are fixed; docs/operations/overload.md lists them all. One caller's requests and streams together
 * are fewer than the connections that one address may have.
 */
export const fixedBudgets = {
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

export class BudgetSpent extends Error {}

/**
 * The remaining work of a check. Schemas come from servers and arguments from callers, and a schema can make a
 * validator repeat work exponentially often; the budget guarantees that every check ends.
 */
export interface Budget {
  left: number
  readonly spent: BudgetSpent
}

/** Shared: checks are synchronous, so only one runs at a time. */
export const budget: Budget = { left: 0, spent: new BudgetSpent('checking took too many steps') }

/** A step takes about 5 to 30 ns and blocks the event loop: 50 ms at most. */
export const stepsPerCheck = 2_000_000

export function charge(steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw budget.spent
}

/** Characters processed per step, and steps to enumerate one member. */
const charactersPerStep = 16
export const stepsPerMember = 4

/** Charges for iterating over a value's own characters or members; nested values are not included. */
export function chargeForWhole(value: unknown, times: number): void {
  if (typeof value === 'string') charge(Math.ceil(value.length / charactersPerStep) * times)
  else if (typeof value === 'object' && value !== null && !Array.isArray(value))
    charge(Object.keys(value).length * stepsPerMember * times)
}

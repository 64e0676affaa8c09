export class BudgetSpent extends Error {}

/**
 * The work that a check may still do. Schemas come from servers and arguments from callers, and a schema can make a
 * validator take exponential time. The budget guarantees that every check ends.
 */
interface Budget {
  left: number
  readonly spent: BudgetSpent
}

/** One budget is shared by all checks: they are synchronous, so only one runs at a time. */
export const budget: Budget = { left: 0, spent: new BudgetSpent('checking took too many steps') }

/** The budget for one check. A step takes 5 to 30 ns, so a check blocks the event loop for about 50 ms at most. */
export const stepsPerCheck = 2_000_000

export function charge(steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw budget.spent
}

/** How many characters are processed per step, and how many steps it takes to enumerate one member. */
const charactersPerStep = 16
export const stepsPerMember = 4

/** Charges the budget for iterating over the characters or members of a value. Nested values are not included. */
export function chargeForWhole(value: unknown, times: number): void {
  if (typeof value === 'string') charge(Math.ceil(value.length / charactersPerStep) * times)
  else if (typeof value === 'object' && value !== null && !Array.isArray(value))
    charge(Object.keys(value).length * stepsPerMember * times)
}

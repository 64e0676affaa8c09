/** Thrown when checking takes more steps than it may. */
export class BudgetSpent extends Error {}

/**
 * How much work checking may still do. A schema can make a validator try the same thing exponentially often, and it
 * comes from a server, the arguments from a caller: whoever wrote them, the check must end.
 */
export interface Budget {
  left: number
  readonly spent: BudgetSpent
}

/** One budget for all: checking never waits, so no two checks run at a time. */
export const budget: Budget = { left: 0, spent: new BudgetSpent('checking took too many steps') }

/** A step takes some 5 to 30 ns, and everybody else waits: a twentieth of a second at most. */
export const stepsPerCheck = 2_000_000

export function charge(steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw budget.spent
}

/** Characters that are gone through in one step, and steps that it takes to find all the names of each member. */
const charactersPerStep = 16
export const stepsPerMember = 4

/** Pays for going through all of a value's own characters or members so often; what its members hold is not among them. */
export function chargeForWhole(value: unknown, times: number): void {
  if (typeof value === 'string') charge(Math.ceil(value.length / charactersPerStep) * times)
  else if (typeof value === 'object' && value !== null && !Array.isArray(value))
    charge(Object.keys(value).length * stepsPerMember * times)
}

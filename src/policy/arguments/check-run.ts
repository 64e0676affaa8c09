import type { Fields } from '../../core/schema-keywords.ts'
/** What a value violates. */
export interface Problem {
  readonly keyword: string
  /** The JSON pointer of the value. */
  readonly path: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: each keyword has its own.
  readonly params: any
  /** The value and the schema with the keyword. Absent if only the first problem is looked for. */
  readonly data?: unknown
  readonly schema?: Fields
}

/** The members and items of a value that a keyword evaluated, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Evaluated = Set<string | number>

export type ValueCheck = (value: unknown, evaluated?: Evaluated) => boolean

export interface Keyword {
  readonly check: ValueCheck
  /** Describes a failure. Absent for keywords whose subschemas describe it. */
  readonly params?: (value: unknown) => Fields
}

/** The state of the running check. Checks are synchronous, so only one runs at a time. */
export const checkRun = {
  problems: undefined as Problem[] | undefined,
  /** Whether to find all problems and not only the first one. */
  all: false,
  path: [] as string[],
  /** The outermost schema that has been entered with each dynamic anchor. */
  anchors: new Map<string, Fields>(),
}

/** Notes a problem, if they are collected. Returns false. */
export function noteProblem(keyword: string, params: Fields, data: unknown, schema: Fields): false {
  checkRun.problems?.push({ keyword, path: [...checkRun.path], params, ...(checkRun.all && { data, schema }) })
  return false
}

/** Checks a member or an item, whose name is part of the path in problems. */
export function checkMember(check: ValueCheck, value: unknown, name: string): boolean {
  checkRun.path.push(name)
  const accepts = check(value)
  checkRun.path.pop()
  return accepts
}

/** Runs a check whose problems are not problems of the value. */
export function quietly<T>(check: () => T): T {
  const { problems, all } = checkRun
  checkRun.problems = undefined
  checkRun.all = false
  try {
    return check()
  } finally {
    checkRun.problems = problems
    checkRun.all = all
  }
}

export class BudgetSpent extends Error {}

/**
 * The work that the running check may still do. Schemas come from servers and arguments from callers, and a schema can
 * make a validator take exponential time. The budget guarantees that every check ends.
 */
export const stepBudget = { left: 0, spent: new BudgetSpent('checking took too many steps') }

/** The budget for one check. A step takes 5 to 30 ns, so a check blocks the event loop for about 50 ms at most. */
export const stepsPerCheck = 2_000_000

export function charge(steps: number): void {
  stepBudget.left -= steps
  if (stepBudget.left < 0) throw stepBudget.spent
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

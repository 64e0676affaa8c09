import { budget, type Check, type Problem, run, stepsPerCheck } from './check-run.ts'
import { compileSchema } from './keywords.ts'
import type { PatternCompiler } from './patterns.ts'
import type { PreparedSchema } from './prepare.ts'

/**
 * The budget for finding all problems. It is smaller than that for a check, because every problem allocates an object, and
 * a model fixes only a few at a time.
 */
const stepsPerExplanation = 20_000

/** Checks values against a schema that `prepare` returned. Every method throws `BudgetSpent` if it takes too long. */
export class SchemaChecker {
  readonly #check: Check

  /** Throws if the schema is invalid. `compilePattern` may be absent for a schema without patterns. */
  constructor(prepared: PreparedSchema, compilePattern?: PatternCompiler) {
    this.#check = compileSchema(prepared, compilePattern)
    // A schema whose check never ends must be detected now, not on every call.
    this.accepts({})
  }

  accepts(value: unknown): boolean {
    budget.left = stepsPerCheck
    run.anchors.clear()
    return this.#check(value)
  }

  firstProblem(value: unknown): readonly Problem[] {
    return this.#problems(value, stepsPerCheck, false)
  }

  allProblems(value: unknown): readonly Problem[] {
    return this.#problems(value, stepsPerExplanation, true)
  }

  #problems(value: unknown, steps: number, all: boolean): readonly Problem[] {
    const problems: Problem[] = []
    run.path = []
    run.problems = problems
    run.all = all
    try {
      budget.left = steps
      run.anchors.clear()
      this.#check(value)
    } finally {
      run.problems = undefined
      run.all = false
    }
    return problems
  }
}

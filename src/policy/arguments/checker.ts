import { checkRun, type Problem, stepBudget, stepsPerCheck, type ValueCheck } from './check-run.ts'
import { compileChecks } from './keywords.ts'
import type { PatternCompiler } from './patterns.ts'
import type { PreparedSchema } from './prepare.ts'

/**
 * The budget for finding all problems. It is smaller than that for a check, because every problem allocates an object, and
 * a model fixes only a few at a time.
 */
const stepsPerExplanation = 20_000

/** Checks values against a schema that `prepare` returned. Every method throws `BudgetSpent` if it takes too long. */
export class SchemaChecker {
  readonly #check: ValueCheck

  /** Throws if the schema is invalid. `compilePattern` may be absent for a schema without patterns. */
  constructor(prepared: PreparedSchema, compilePattern?: PatternCompiler) {
    this.#check = compileChecks(prepared, compilePattern)
    // A schema whose check never ends must be detected now, not on every call.
    this.accepts({})
  }

  accepts(value: unknown): boolean {
    stepBudget.left = stepsPerCheck
    checkRun.anchors.clear()
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
    checkRun.path = []
    checkRun.problems = problems
    checkRun.all = all
    try {
      stepBudget.left = steps
      checkRun.anchors.clear()
      this.#check(value)
    } finally {
      checkRun.problems = undefined
      checkRun.all = false
    }
    return problems
  }
}

import { createHash } from 'node:crypto'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { composedSchemas, type Fields, requiredNames, schemasAt } from '../../core/schema-keywords.ts'
import { foldName } from '../../lib/characters.ts'
import { isRecord } from '../../lib/is-record.ts'
import { createLazy, setBounded } from '../../lib/memoize.ts'
import { BudgetSpent, checkRun, type Problem, stepBudget, stepsPerCheck, type ValueCheck } from './check-run.ts'
import { compileChecks } from './keywords.ts'
import type { linearPatterns, PatternCompiler } from './patterns.ts'
import { type PreparedSchema, prepareSchema, Unfit, valuesIn } from './prepare.ts'
import { describeProblems } from './problems.ts'

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

/**
 * Throws INVALID_ARGUMENTS if the arguments do not match the tool's schema (F9). The first call that needs patterns
 * waits until their compiler is loaded; all others are synchronous. `exact` holds the arguments with a `ExactNumber` for each number
 * that a double cannot represent. The schema may contain `ExactNumber`s too.
 */
export type ValidateArguments = (
  schema: Fields,
  args: Fields,
  tool: string,
  exact?: Fields,
) => Promise<void> | undefined

interface SchemaState {
  readonly prepared: PreparedSchema | undefined
  checker?: SchemaChecker
  /** Why the schema cannot be used. */
  unfit?: string
}

/** Max number of cached schemas, at about 20 KiB each. */
const maxKnownSchemas = 1000

/** Max values in arguments for which all problems are reported, and not only the first one. */
const maxExplained = 2000

export function argumentValidator({ log }: { readonly log: Log }): ValidateArguments {
  const schemas = new KnownSchemas(log)
  return (schema, args, tool, exact = args) => {
    const state = schemas.stateOf(schema, tool)
    const misspelt = misspeltArgument(state.prepared?.rewritten ? state.prepared.schema : schema, args)
    if (misspelt !== undefined) throw argumentsRefusal(tool, misspelt)
    if (state.checker && accepts(state.checker, exact)) return undefined
    const checker = schemas.checkerOf(state, tool)
    if (checker instanceof Promise) return checker.then((loaded) => checkArguments(loaded, schema, tool, exact))
    return checkArguments(checker, schema, tool, exact)
  }
}

/** The schemas of tools, checked and compiled once. Tools with an unusable schema are blocked. */
class KnownSchemas {
  readonly #log: Log
  readonly #keys = new WeakMap<Fields, string>()
  readonly #states = new Map<string, SchemaState>()
  readonly #loading = createLazy(async () => (await import('./patterns.ts')).linearPatterns)
  #linearPatterns: typeof linearPatterns | undefined

  constructor(log: Log) {
    this.#log = log
  }

  stateOf(schema: Fields, tool: string): SchemaState {
    let key = this.#keys.get(schema)
    if (key === undefined) {
      key = createHash('sha256').update(JSON.stringify(schema)).digest('base64')
      this.#keys.set(schema, key)
    }
    const known = this.#states.get(key)
    if (known) return known
    const state = this.#attempt(tool, { prepared: undefined }, () => ({ prepared: prepareSchema(schema) }))
    setBounded(this.#states, key, state, maxKnownSchemas)
    return state
  }

  /** The checker of a schema; a promise until the compiler of patterns is loaded. Throws if the schema is unusable. */
  checkerOf(state: SchemaState, tool: string): SchemaChecker | Promise<SchemaChecker> {
    const { prepared } = state
    if (state.checker) return state.checker
    if (prepared?.hasPatterns && !this.#linearPatterns && state.unfit === undefined) {
      return this.#loading.get().then((loaded) => {
        this.#linearPatterns = loaded
        return this.checkerOf(state, tool)
      })
    }
    if (prepared && state.unfit === undefined) {
      this.#attempt(tool, state, () => ({ checker: new SchemaChecker(prepared, this.#linearPatterns?.()) }))
    }
    if (!state.checker) throw unusableTool(tool, state.unfit ?? 'it is invalid')
    return state.checker
  }

  /** Blocks a tool whose schema is unusable. Otherwise a server could disable the check with such a schema. */
  #attempt(tool: string, state: SchemaState, make: () => Partial<SchemaState>): SchemaState {
    try {
      return Object.assign(state, make())
    } catch (thrown) {
      state.unfit = unfitReason(thrown)
      this.#log.warn({ tool, reason: state.unfit }, 'tool is blocked: its input schema cannot be compiled')
      return state
    }
  }
}

function checkArguments(checker: SchemaChecker, schema: Fields, tool: string, args: Fields): undefined {
  const refused = (problems: string) => argumentsRefusal(tool, problems)
  const tooComplex = 'they are too complex to check; send fewer or simpler values'
  try {
    let given = args
    const isAccepted = withinBudget(() => {
      if (checker.accepts(args)) return true
      given = withoutNulls(schema, args)
      return given !== args && checker.accepts(given)
    })
    if (isAccepted) return
    if (isAccepted === undefined) throw refused(tooComplex)
    const all = valuesIn(given, maxExplained) > maxExplained ? [] : withinBudget(() => checker.allProblems(given))
    const problems = all?.length ? all : withinBudget(() => checker.firstProblem(given))
    throw refused(problems ? describeProblems(problems) : tooComplex)
  } catch (error) {
    if (error instanceof ToolwayError) throw error
    throw refused('they cannot be checked against the schema; send simpler values')
  }
}

/** A checker for one schema. Never throws: `unfit` says why a schema cannot be used. */
export async function openChecker(schema: Fields): Promise<SchemaChecker | { readonly unfit: string }> {
  const { linearPatterns } = await import('./patterns.ts')
  try {
    return new SchemaChecker(prepareSchema(schema), linearPatterns())
  } catch (thrown) {
    return { unfit: unfitReason(thrown) }
  }
}

export async function schemaProblem(schema: Fields): Promise<string | undefined> {
  const checker = await openChecker(schema)
  return 'unfit' in checker ? checker.unfit : undefined
}

/** Why a schema is unusable. Messages may contain text from the schema. */
function unfitReason(thrown: unknown): string {
  if (thrown instanceof Unfit) return thrown.message
  const message = thrown instanceof Error ? thrown.message : ''
  return `it is invalid: ${JSON.stringify(message.slice(0, 100).replaceAll(/[^\x20-\x7e]+/g, ' '))}`
}

const argumentsRefusal = (tool: string, problems: string) =>
  new ToolwayError('INVALID_ARGUMENTS', `Invalid arguments for ${tool}: ${problems}.`)

function unusableTool(tool: string, reason: string): ToolwayError {
  const dot = tool.indexOf('.')
  const server = dot === -1 ? undefined : tool.slice(0, dot)
  const advice =
    server === 'native'
      ? 'Fix the inputSchema in the definition of the tool.'
      : `Fix the schema in the server, or exclude the tool with mcpServers.${server ?? 'NAME'}.tools.exclude.`
  const sentence = `${tool} cannot be used: its input schema cannot be compiled (${reason}). ${advice}`
  return new ToolwayError('QUARANTINED', sentence, { server, rule: 'inputSchema' })
}

const accepts = (checker: SchemaChecker, args: Fields): boolean => withinBudget(() => checker.accepts(args)) === true

/** Omits optional fields that are null, as models and clients often send them; the server decides what null means. */
function withoutNulls(schema: Fields, args: Fields): Fields {
  const needed = new Set(requiredNames(schema))
  const given = Object.entries(args).filter(([name, value]) => value !== null || needed.has(name))
  return given.length === Object.keys(args).length ? args : Object.fromEntries(given)
}

/** Runs a check. Returns undefined if the check exceeds its budget or overflows the stack. */
function withinBudget<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) return undefined
    throw error
  }
}

/** Max subschemas visited per call, because servers' schemas may be circular. */
const maxVisited = 100_000

/**
 * Reports an undeclared argument whose name differs from a declared one only in case, width, white space or the like.
 * Some parsers ignore such differences (Go's `encoding/json`) and would use the unchecked value for the declared
 * argument.
 */
export function misspeltArgument(schema: Fields, args: Fields): string | undefined {
  if (isPlainCall(schema, args)) return undefined
  const cost = { steps: 0 }

  const look = (level: SchemaLevel, value: unknown, path: string): string | undefined => {
    if (cost.steps > maxVisited) return 'they are too complex to check; send fewer or simpler values'
    if (Array.isArray(value)) {
      const inner = level.at(undefined)
      return firstFound(value.entries(), ([index, item]) => look(inner, item, `${path}[${index}]`))
    }
    if (!isRecord(value)) return undefined
    return firstFound(Object.keys(value), (name) => {
      const at = path === '' ? name : `${path}.${name}`
      const declared = level.declared(name)
      if (declared !== undefined && declared !== name) {
        return `${JSON.stringify(at.slice(0, 100))} may be read as "${declared}"; spell it exactly like that, or remove it`
      }
      const inner = value[name]
      return declared === undefined || typeof inner !== 'object' ? undefined : look(level.at(name), inner, at)
    })
  }

  return look(createLevel([schema], schema, cost), args, '')
}

/** Whether a call has only declared arguments and no nested values. This is the fast path for most calls. */
function isPlainCall({ properties }: Fields, args: Fields): boolean {
  for (const name in args) {
    const value = args[name]
    if (typeof value === 'object' && value !== null) return false
    if (!isRecord(properties) || !Object.hasOwn(properties, name)) return false
  }
  return true
}

/** The members that the schemas at one position declare. */
interface SchemaLevel {
  /** The declared name that is equal to this name, or that a parser may mistake this name for. */
  declared(name: string): string | undefined
  /** The level of a member; if no member is given, the level of the items. */
  at(member: string | undefined): SchemaLevel
}

function createLevel(schemas: readonly unknown[], root: Fields, cost: { steps: number }): SchemaLevel {
  const all = composedSchemas(schemas, root)
  const names = new Set(all.flatMap(({ properties }) => (isRecord(properties) ? Object.keys(properties) : [])))
  const levels = new Map<string | undefined, SchemaLevel>()
  let folded: ReadonlyMap<string, string> | undefined
  cost.steps += all.length + names.size
  return {
    declared(name) {
      if (names.has(name) || names.size === 0) return names.has(name) ? name : undefined
      folded ??= new Map([...names].map((declared) => [foldName(declared), declared]))
      return folded.get(foldName(name))
    },
    at(member) {
      let level = levels.get(member)
      if (level === undefined) {
        level = createLevel(schemasAt(schemas, member, root), root, cost)
        levels.set(member, level)
      }
      return level
    },
  }
}

function firstFound<Item>(items: Iterable<Item>, find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

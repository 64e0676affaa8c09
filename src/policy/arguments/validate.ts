import { createHash } from 'node:crypto'
import type { ErrorObject } from 'ajv'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { requiredNames } from '../../core/schema-keywords.ts'
import { isRecord } from '../../lib/is-record.ts'
import { createLazy } from '../../lib/lazy.ts'
import { foldName } from '../../lib/lookalikes.ts'
import { setBounded } from '../../lib/memoize.ts'
import { composed, schemasAt } from '../schema-members.ts'
import type { Compiled } from './compile.ts'
import { BudgetSpent, budget, type Fits, plainCheck, stepsPerCheck } from './keyword-checks.ts'
import { prepare, valuesIn } from './prepare.ts'
import { sentenceOf } from './problems.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Throws INVALID_ARGUMENTS if the arguments do not match the tool's schema (F9). The first call that needs the compiler
 * waits until it is loaded; all others are synchronous. `exact` holds the arguments with a `ExactNumber` for each number
 * that a double cannot represent. The schema may contain `ExactNumber`s too.
 */
export type ValidateArguments = (
  schema: Fields,
  args: Fields,
  tool: string,
  exact?: Fields,
) => Promise<void> | undefined

interface Made {
  /** A fast check, which is enough to accept most tools' arguments in most calls. */
  readonly plain: Fits | undefined
  compiled?: Compiled
  /** A check that compares numbers by their digits, compiled when arguments have numbers that a double cannot hold. */
  exact?: Compiled
  /** Whether the schema itself contains numbers that a double cannot represent. */
  readonly rounds: boolean
  /** The schema with JSON pointers in place of references to IDs, if it has such references. */
  readonly rewritten?: Fields
  unfit?: string
}

/** Max number of cached schemas, at about 20 KiB each. */
const maxMade = 1000

/** Max values in arguments for which all problems are reported, and not only the first one. */
const maxExplained = 2000

export function argumentValidator({ log }: { readonly log: Log }): ValidateArguments {
  let compile: typeof import('./compile.ts').compile | undefined
  const loading = createLazy(async () => {
    compile = (await import('./compile.ts')).compile
  })
  const keys = new WeakMap<Fields, string>()
  const kept = new Map<string, Made>()

  const madeOf = (schema: Fields, tool: string): Made => {
    let key = keys.get(schema)
    if (key === undefined) {
      key = createHash('sha256').update(JSON.stringify(schema)).digest('base64')
      keys.set(schema, key)
    }
    const known = kept.get(key)
    if (known) return known
    const prepared = prepare(schema)
    const made: Made =
      'unfit' in prepared
        ? { plain: undefined, rounds: false, unfit: prepared.unfit }
        : {
            plain: prepared.rounds ? undefined : plainCheck(prepared.schema),
            rounds: prepared.rounds,
            rewritten: prepared.rewritten ? prepared.schema : undefined,
          }
    setBounded(kept, key, made, maxMade)
    if (made.unfit !== undefined) giveUp(made, tool, made.unfit)
    return made
  }

  const compiledOf = (made: Made, schema: Fields, tool: string, kind: 'compiled' | 'exact'): Compiled => {
    const known = made[kind]
    if (known) return known
    if (made.unfit !== undefined) throw unusable(tool, made.unfit)
    const compiled = compile!(schema, kind === 'exact')
    if ('unfit' in compiled) throw giveUp(made, tool, compiled.unfit)
    made[kind] = compiled
    return compiled
  }

  /** Blocks a tool whose schema is unusable. Otherwise a server could disable the check with such a schema. */
  const giveUp = (made: Made, tool: string, reason: string): ToolwayError => {
    delete made.compiled
    delete made.exact
    made.unfit = reason
    log.warn({ tool, reason }, 'tool is blocked: its input schema cannot be compiled')
    return unusable(tool, reason)
  }

  const check = (made: Made, schema: Fields, args: Fields, tool: string, exact: Fields): undefined => {
    const compiled = compiledOf(made, schema, tool, made.rounds || exact !== args ? 'exact' : 'compiled')
    const refused = (problems: string) => refusal(tool, problems)
    let problems: readonly ErrorObject[] | undefined
    try {
      problems = attempt(() => compiled.check(args, exact))
      const given = problems?.length ? withoutNulls(schema, args) : args
      if (given !== args) problems = attempt(() => compiled.check(given, exact))
    } catch {
      // Members named like methods (`valueOf`) break comparison. Only these arguments have that problem, so it must not
      // block the tool for all callers.
      if (!failsForAll(compiled)) throw refused('they cannot be checked against the schema; send simpler values')
      throw giveUp(made, tool, 'validating with it fails')
    }
    if (problems === undefined) throw refused('they are too complex to check; send fewer or simpler values')
    if (problems.length === 0) return
    throw refused(sentenceOf(explained(compiled, args, exact) ?? problems))
  }

  return (schema, args, tool, exact = args) => {
    const made = madeOf(schema, tool)
    const misspelt = misspeltArgument(made.rewritten ?? schema, args)
    if (misspelt !== undefined) throw refusal(tool, misspelt)
    if (exact === args && made.plain && says(made.plain, args)) return undefined
    if (compile) return check(made, schema, args, tool, exact)
    return loading.get().then(() => check(made, schema, args, tool, exact))
  }
}

export async function schemaProblem(schema: Fields): Promise<string | undefined> {
  const { compile } = await import('./compile.ts')
  const compiled = compile(schema)
  return 'unfit' in compiled ? compiled.unfit : undefined
}

const refusal = (tool: string, problems: string) =>
  new ToolwayError('INVALID_ARGUMENTS', `Invalid arguments for ${tool}: ${problems}.`)

function unusable(tool: string, reason: string): ToolwayError {
  const dot = tool.indexOf('.')
  const server = dot === -1 ? undefined : tool.slice(0, dot)
  const advice =
    server === 'native'
      ? 'Fix the inputSchema in the definition of the tool.'
      : `Fix the schema in the server, or exclude the tool with mcpServers.${server ?? 'NAME'}.tools.exclude.`
  const sentence = `${tool} cannot be used: its input schema cannot be compiled (${reason}). ${advice}`
  return new ToolwayError('QUARANTINED', sentence, { server, rule: 'inputSchema' })
}

function says(plain: Fits, args: Fields): boolean {
  budget.left = stepsPerCheck
  return attempt(() => plain(args)) === true
}

/** Omits optional fields that are null, as models and clients often send them; the server decides what null means. */
function withoutNulls(schema: Fields, args: Fields): Fields {
  const needed = new Set(requiredNames(schema))
  const given = Object.entries(args).filter(([name, value]) => value !== null || needed.has(name))
  return given.length === Object.keys(args).length ? args : Object.fromEntries(given)
}

/** Whether a check fails because of the schema, and not because of the arguments. */
function failsForAll({ check }: Compiled): boolean {
  try {
    attempt(() => check({}))
    return false
  } catch {
    return true
  }
}

/** Runs a check. Returns undefined if the check exceeds its budget or overflows the stack. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) return undefined
    throw error
  }
}

function explained({ explain }: Compiled, args: Fields, exact: Fields): readonly ErrorObject[] | undefined {
  if (valuesIn(args, maxExplained) > maxExplained) return undefined
  try {
    const all = attempt(() => explain(args, exact))
    return all?.length ? all : undefined
  } catch {
    // Members named like methods (`valueOf`) break comparison. Omit the explanation: the arguments are invalid anyway.
    return undefined
  }
}

/** Max subschemas visited per call, because servers' schemas may be circular. */
const maxSteps = 100_000

/**
 * Reports an undeclared argument whose name differs from a declared one only in case, width, white space or the like.
 * Some parsers ignore such differences (Go's `encoding/json`) and would use the unchecked value for the declared
 * argument.
 */
export function misspeltArgument(schema: Fields, args: Fields): string | undefined {
  if (isPlain(schema, args)) return undefined
  const cost = { steps: 0 }

  const look = (level: Level, value: unknown, path: string): string | undefined => {
    if (cost.steps > maxSteps) return 'they are too complex to check; send fewer or simpler values'
    if (Array.isArray(value)) {
      const inner = level.at(undefined)
      return firstOf(value.entries(), ([index, item]) => look(inner, item, `${path}[${index}]`))
    }
    if (!isRecord(value)) return undefined
    return firstOf(Object.keys(value), (name) => {
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
function isPlain({ properties }: Fields, args: Fields): boolean {
  for (const name in args) {
    const value = args[name]
    if (typeof value === 'object' && value !== null) return false
    if (!isRecord(properties) || !Object.hasOwn(properties, name)) return false
  }
  return true
}

/** The members that the schemas at one position declare. */
interface Level {
  /** The declared name that is equal to this name, or that a parser may mistake this name for. */
  declared(name: string): string | undefined
  /** The level of a member; if no member is given, the level of the items. */
  at(member: string | undefined): Level
}

function createLevel(schemas: readonly unknown[], root: Fields, cost: { steps: number }): Level {
  const all = composed(schemas, root)
  const names = new Set(all.flatMap(({ properties }) => (isRecord(properties) ? Object.keys(properties) : [])))
  const levels = new Map<string | undefined, Level>()
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

function firstOf<Item>(items: Iterable<Item>, find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

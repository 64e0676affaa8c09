import type { ServerConfig } from '../../config/schema.ts'
import type { Definition, Kind, Traits } from '../../core/entry.ts'
import { hiddenCharacters, withoutHidden } from '../../core/hidden-characters.ts'
import { matches } from '../../core/wildcard.ts'
import { asRecord } from '../../lib/is-record.ts'
import { isObjectSchema } from '../../wire/convert-result.ts'

/** What a list of a server holds. */
export type ListedKind = 'tool' | 'resource' | 'template' | 'prompt'

type Check = (value: unknown) => boolean

const isObject: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isNumber: Check = (value) => typeof value === 'number'
const oneOf =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
/** An object of which these members, where it has them, are right. */
const having =
  (members: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(members).every(([name, check]) => isRight(asRecord(value)[name], check))
const isRight = (value: unknown, check: Check): boolean => value === undefined || check(value)

const isMoment: Check = (value) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.test(value)
const isIcon: Check = (value) =>
  isText(asRecord(value).src) &&
  having({ mimeType: isText, sizes: listOf(isText), theme: oneOf('light', 'dark') })(value)
const isArgument: Check = (value) =>
  isText(asRecord(value).name) && having({ title: isText, description: isText, required: isFlag })(value)

const common = { title: isText, description: isText, icons: listOf(isIcon), _meta: isObject }
const ofResources = {
  ...common,
  mimeType: isText,
  size: isNumber,
  annotations: having({
    audience: listOf(oneOf('user', 'assistant')),
    priority: (value) => isNumber(value) && (value as number) >= 0 && (value as number) <= 1,
    lastModified: isMoment,
  }),
}

/** Members that may be missing, and what they are where they are not. */
const optional: Readonly<Record<ListedKind, Readonly<Record<string, Check>>>> = {
  tool: {
    ...common,
    // What it describes is nobody's business here: not every revision knows outputs that are no objects.
    outputSchema: having({ $schema: isText }),
    annotations: having({
      title: isText,
      readOnlyHint: isFlag,
      destructiveHint: isFlag,
      idempotentHint: isFlag,
      openWorldHint: isFlag,
    }),
    execution: having({ taskSupport: oneOf('forbidden', 'optional', 'required') }),
  },
  resource: ofResources,
  template: ofResources,
  prompt: { ...common, arguments: listOf(isArgument) },
}

/**
 * A definition that every client can read. Clients take a list whole or not at all: one word out of place in the
 * definition of one tool would take the tools of all servers from them. What may be missing is left out where it is
 * wrong, and what is wrong without being needed is said in the usual way; all else stays as it is.
 */
export function repairedDefinition(kind: ListedKind, definition: Definition): Definition {
  const wrong = Object.entries(optional[kind]).filter(([name, check]) => !isRight(definition[name], check))
  const changes: Record<string, unknown> = Object.fromEntries(wrong.map(([name]) => [name, undefined]))
  if (kind === 'tool' && !isObjectSchema(definition.inputSchema))
    changes.inputSchema = soundInput(definition.inputSchema)
  if (kind === 'resource' || kind === 'template') {
    if (!isText(definition.name)) changes.name = definition.uri ?? definition.uriTemplate
  }
  if (Object.keys(changes).length === 0) return definition
  const kept = Object.entries({ ...definition, ...changes }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept)
}

function soundInput(schema: unknown): Readonly<Record<string, unknown>> {
  const { type: _type, properties, required, ...rest } = asRecord(schema)
  const named = Object.entries(asRecord(properties)).map(([name, inner]) => [name, schemaObject(inner)])
  return {
    type: 'object',
    ...(properties !== undefined && { properties: Object.fromEntries(named) }),
    ...(listOf(isText)(required) && { required }),
    ...rest,
  }
}

/** A schema may be `true` or `false`, but not everybody knows. What is none says nothing. */
const schemaObject = (schema: unknown): unknown => (isObject(schema) ? schema : schema === false ? { not: {} } : {})

/** A definition as clients are shown it, and why it cannot be shown at all, if so. */
interface Shown {
  /** The same object where nothing had to be changed. */
  readonly definition: Definition
  readonly problem?: string
}

/** Which members name the thing itself: calls need them as the server spells them. */
const identities: Readonly<Record<ListedKind, readonly string[]>> = {
  tool: ['name'],
  resource: ['uri'],
  template: ['uriTemplate'],
  prompt: ['name'],
}

/** Members of schemas whose values callers must send or schemas refer to as they are. */
const verbatim: ReadonlySet<string> = new Set([
  'enum',
  'const',
  'pattern',
  'required',
  '$ref',
  '$dynamicRef',
  '$anchor',
])

/**
 * Takes characters that nobody sees out of every text of a definition (B5). What callers must spell exactly (names,
 * members, values to choose from) cannot be changed: a definition that hides something there is not offered.
 */
export function visibleDefinition(kind: ListedKind, definition: Definition): Shown {
  let problem: string | undefined

  const exact = (text: string, where: string): string => {
    if (problem === undefined && hiddenCharacters(text).length > 0) problem = `its ${where} holds hidden characters`
    return text
  }

  const cleaned = (value: unknown, where: string, isExact: boolean): unknown => {
    if (typeof value === 'string') return isExact ? exact(value, where) : withoutHidden(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      const items = value.map((item) => cleaned(item, where, isExact))
      return items.some((item, index) => item !== value[index]) ? items : value
    }
    let changed = false
    const members = Object.entries(value).map(([key, member]) => {
      const given = cleaned(member, exact(key, where), isExact || verbatim.has(key) || isArgumentName(where, key))
      changed ||= given !== member
      return [key, given]
    })
    return changed ? Object.fromEntries(members) : value
  }

  const isArgumentName = (where: string, key: string) => kind === 'prompt' && where === 'arguments' && key === 'name'

  let changed = false
  const members = Object.entries(definition).map(([key, member]) => {
    // For programs, which read it as it is.
    const given = key === '_meta' ? member : cleaned(member, key, identities[kind].includes(key))
    changed ||= given !== member
    return [key, given]
  })
  const shown = changed ? (Object.fromEntries(members) as Definition) : definition
  return problem === undefined ? { definition: shown } : { definition: shown, problem }
}

/** Whether a read-only server has tools, none of which is known to be a read: none of them can be used then. */
export function hidesEveryTool(config: ServerConfig, tools: readonly Definition[]): boolean {
  if (!config.readOnly || tools.length === 0) return false
  return !tools.some(
    (tool) => traitsOf('tool', String(tool.name), tool, { server: '', config, timeoutMs: 0, maxTimeoutMs: 0 }).readOnly,
  )
}

interface TraitOptions {
  readonly server: string
  readonly config: ServerConfig
  /** Of a call, and of one whose server reports progress. */
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
}

/** The operator's word counts; the server's own annotations only where the operator trusts them. */
export function traitsOf(kind: Kind, name: string, definition: Definition, options: TraitOptions): Traits {
  const { config } = options
  const annotations = config.trustAnnotations && kind === 'tool' ? asRecord(definition.annotations) : {}
  const listed = (patterns: readonly string[]) => patterns.some((pattern) => matches(pattern, name))
  const readOnly = kind !== 'tool' || listed(config.readTools) || annotations.readOnlyHint === true
  return {
    readOnly,
    idempotent: readOnly || listed(config.idempotentTools) || annotations.idempotentHint === true,
    ...timeLimitsOf(name, options),
  }
}

function timeLimitsOf(
  name: string,
  { server, config, timeoutMs, maxTimeoutMs }: TraitOptions,
): Pick<Traits, 'timeoutMs' | 'timeoutKey' | 'maxTimeout'> {
  const own = Object.hasOwn(config.toolTimeouts, name) ? config.toolTimeouts[name] : undefined
  const ofServer = config.timeout === undefined ? 'defaults.timeout' : `mcpServers.${server}.timeout`
  const ms = own ?? timeoutMs
  return {
    timeoutMs: ms,
    timeoutKey: own === undefined ? ofServer : `mcpServers.${server}.toolTimeouts.${name}`,
    maxTimeout: {
      // The operator may allow a call more time without progress than the maximum for calls with progress.
      ms: Math.max(ms, config.maxTimeout ?? maxTimeoutMs),
      key: config.maxTimeout === undefined ? 'defaults.maxTimeout' : `mcpServers.${server}.maxTimeout`,
    },
  }
}

import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'
import type { Definition, Kind, Traits } from '../../core/entry.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { type ToolOverride, toolOverrides } from '../../core/tool-overrides.ts'
import { hiddenCharacters, withoutHidden } from '../../lib/characters.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { matches } from '../../lib/wildcard.ts'
import { isObjectSchema } from '../../wire/convert-result.ts'

const text = z.string().optional()
const optionalFlag = z.boolean().optional()
const textList = z.array(z.string())
const timestampPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/
const icon = z.object({
  src: z.string(),
  mimeType: text,
  sizes: textList.optional(),
  theme: z.enum(['light', 'dark']).optional(),
})

const common = { title: text, description: text, icons: z.array(icon).optional(), _meta: z.custom(isRecord).optional() }
const ofResources = {
  ...common,
  mimeType: text,
  // Clients parse a size as an integer, many of them as one that is not negative.
  size: z.int().nonnegative().optional(),
  annotations: z
    .object({
      audience: z.array(z.enum(['user', 'assistant'])).optional(),
      priority: z.number().min(0).max(1).optional(),
      lastModified: z.string().regex(timestampPattern).optional(),
    })
    .optional(),
}

const optionalMembers: Readonly<Record<Kind, Readonly<Record<string, z.ZodType>>>> = {
  tool: {
    ...common,
    // The rest of the schema is not checked, because some revisions allow outputs that are not objects.
    outputSchema: z.object({ $schema: text }).optional(),
    annotations: z
      .object({
        title: text,
        readOnlyHint: optionalFlag,
        destructiveHint: optionalFlag,
        idempotentHint: optionalFlag,
        openWorldHint: optionalFlag,
      })
      .optional(),
    execution: z.object({ taskSupport: z.enum(['forbidden', 'optional', 'required']).optional() }).optional(),
  },
  resource: ofResources,
  template: ofResources,
  prompt: {
    ...common,
    arguments: z
      .array(z.object({ name: z.string(), title: text, description: text, required: optionalFlag }))
      .optional(),
  },
  // A malformed skill is left out as a whole: clients compare it with its files.
  skill: {},
}

const fitsType = (value: unknown, type: z.ZodType): boolean => type.safeParse(value).success

/**
 * Repairs a definition so that every client can parse it. Clients reject a whole list for one invalid definition, so
 * invalid optional members are removed and invalid required members are repaired. All other members stay unchanged.
 */
export function repairedDefinition(kind: Kind, definition: Definition): Definition {
  const wrong = Object.entries(optionalMembers[kind]).filter(([name, type]) => !fitsType(definition[name], type))
  const changes: Record<string, unknown> = Object.fromEntries(wrong.map(([name]) => [name, undefined]))
  if (kind === 'tool' && !isObjectSchema(definition.inputSchema))
    changes.inputSchema = soundInput(definition.inputSchema)
  const isResource = kind === 'resource' || kind === 'template'
  if (isResource && typeof definition.name !== 'string') changes.name = definition.uri ?? definition.uriTemplate
  if (Object.keys(changes).length === 0) return definition
  const kept = Object.entries({ ...definition, ...changes }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept)
}

/** The members that the repair removed or changed. Those that only some clients do not support are not invalid. */
export function invalidMembers(kind: Kind, definition: Definition, repaired: Definition): readonly string[] {
  const isInvalid = (name: string) =>
    definition[name] !== null &&
    definition[name] !== repaired[name] &&
    !(kind === 'tool' && name === 'inputSchema' && isSchemaWithType(definition.inputSchema))
  return Object.keys(definition)
    .filter((name) => name in optionalMembers[kind] || name === 'inputSchema')
    .filter(isInvalid)
}

/** Whether an input schema is valid, although not for all clients: it may use `true` as a schema, or a list of types. */
function isSchemaWithType(schema: unknown): boolean {
  const { properties = {}, required = [] } = asRecord(schema)
  const isSchema = (inner: unknown) => isRecord(inner) || typeof inner === 'boolean'
  return isRecord(properties) && Object.values(properties).every(isSchema) && fitsType(required, textList)
}

function soundInput(schema: unknown): Readonly<Record<string, unknown>> {
  const { type: _type, properties, required, ...rest } = asRecord(schema)
  const named = Object.entries(asRecord(properties)).map(([name, inner]) => [name, schemaObject(inner)])
  return {
    type: 'object',
    ...(properties !== undefined && { properties: Object.fromEntries(named) }),
    ...(fitsType(required, textList) && { required }),
    ...rest,
  }
}

/** Converts a schema to an object, because not every client supports the schemas `true` and `false`. */
const schemaObject = (schema: unknown): unknown => (isRecord(schema) ? schema : schema === false ? { not: {} } : {})

/** The member that identifies an entry. Calls must repeat its value exactly. */
const identities = { tool: 'name', resource: 'uri', template: 'uriTemplate', prompt: 'name', skill: 'uri' } as const

/** Schema keywords whose values must not be changed. */
const verbatimKeywords = ['enum', 'const', 'pattern', 'required', '$ref', '$dynamicRef', '$anchor']

/**
 * The maximum nesting of a definition. Clients reject a whole list that their JSON parser does not support: .NET allows
 * 64 levels by default, Ruby 100, serde_json 128, pydantic 200. Lists and meta-tools add up to four levels.
 */
const maxDefinitionDepth = fixedLimits.definitionDepth.value

/** Whether a text must stay exactly as it is, only has to be well-formed, or must also show all its characters. */
type TextTreatment = 'exact' | 'wellFormed' | 'visible'

/**
 * Removes invisible characters from all text in a definition (B5), and replaces lone surrogates, which JSON parsers
 * other than JavaScript's reject. Names and values that callers must repeat exactly cannot be changed: if they contain
 * such characters, or if the definition is nested too deeply, `problem` says so, and the entry is not offered.
 */
export function visibleDefinition(kind: Kind, definition: Definition) {
  let problem: string | undefined

  const exact = (text: string, where: string): string => {
    if (!text.isWellFormed()) problem ??= `invalid Unicode in ${where}`
    else if (problem === undefined && hiddenCharacters(text).length > 0) problem = `hidden characters in ${where}`
    return text
  }

  const isTooDeep = (depth: number): boolean => {
    if (depth <= maxDefinitionDepth) return false
    problem ??= `nested deeper than ${maxDefinitionDepth} levels`
    return true
  }

  const isExactMember = (where: string, key: string) =>
    verbatimKeywords.includes(key) || (kind === 'prompt' && where === 'arguments' && key === 'name')

  const mapTexts = (value: unknown, where: string, treatment: TextTreatment, depth: number): unknown => {
    if (typeof value === 'string') {
      if (treatment === 'exact') return exact(value, where)
      return (treatment === 'visible' ? withoutHidden(value) : value).toWellFormed()
    }
    if (typeof value !== 'object' || value === null || isTooDeep(depth)) return value
    if (Array.isArray(value)) return mapItems(value, (item) => mapTexts(item, where, treatment, depth + 1))
    return mapDefinitionMembers(value, (key, member) => {
      const inner = treatment === 'visible' && isExactMember(where, key) ? 'exact' : treatment
      return [
        treatment === 'wellFormed' ? key.toWellFormed() : exact(key, where),
        mapTexts(member, key, inner, depth + 1),
      ]
    })
  }

  const shown = mapDefinitionMembers(definition, (key, member) => {
    // `_meta` is for programs, not for models, so only lone surrogates are replaced.
    // A skill's frontmatter must stay that of its file.
    const isExact = key === identities[kind] || kind === 'skill'
    const treatment = key === '_meta' ? 'wellFormed' : isExact ? 'exact' : 'visible'
    return [key.toWellFormed(), mapTexts(member, key, treatment, 2)]
  })
  return { definition: shown, problem }
}

/** Maps an object's members. Returns the same object if nothing changes. */
function mapDefinitionMembers<T extends object>(value: T, map: (key: string, member: unknown) => [string, unknown]): T {
  const members = Object.entries(value)
  const mapped = members.map(([key, member]) => map(key, member))
  const isChanged = mapped.some(([key, member], index) => key !== members[index]?.[0] || member !== members[index]?.[1])
  return isChanged ? (Object.fromEntries(mapped) as T) : value
}

/** Maps the items of an array. Returns the same array if no item changes. */
function mapItems(value: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const items = value.map(map)
  return items.some((item, index) => item !== value[index]) ? items : value
}

/** Whether a read-only server has tools but none of them is known to be read-only, so that no tool can be used. */
export function hidesEveryTool(config: ServerConfig, tools: readonly Definition[]): boolean {
  if (!config.readOnly || tools.length === 0) return false
  const overrides = toolOverrides(config.tools)
  return !tools.some((tool) => isReadOnly('tool', String(tool.name), tool, config, overrides.get(String(tool.name))))
}

const matchesSome = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => matches(pattern, name))

/** A hint of the server about a tool, if the operator trusts those. */
const isHinted = (kind: Kind, { annotations }: Definition, hint: string, { trustAnnotations }: ServerConfig): boolean =>
  trustAnnotations && kind === 'tool' && asRecord(annotations)[hint] === true

function isReadOnly(
  kind: Kind,
  name: string,
  definition: Definition,
  config: ServerConfig,
  override: ToolOverride | undefined,
): boolean {
  if (kind !== 'tool') return true
  const { readOnlyHint } = override?.annotations ?? {}
  return readOnlyHint ?? (matchesSome(config.readTools, name) || isHinted(kind, definition, 'readOnlyHint', config))
}

interface TraitOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly defaults: { readonly timeoutMs: number; readonly maxTimeoutMs?: number }
  readonly override?: ToolOverride | undefined
}

/** An entry's traits, from the operator's settings and, with `trustAnnotations`, the server's annotations. */
export function traitsOf(kind: Kind, name: string, definition: Definition, options: TraitOptions): Traits {
  const { server, config, defaults, override } = options
  const { timeoutMs: usualMs, maxTimeoutMs = 600_000 } = defaults
  const readOnly = isReadOnly(kind, name, definition, config, override)
  const own = Object.hasOwn(config.toolTimeouts, name) ? config.toolTimeouts[name] : undefined
  const ofServer = config.timeout === undefined ? 'defaults.timeout' : `mcpServers.${server}.timeout`
  const timeoutMs = own ?? config.timeout ?? usualMs
  const { idempotentHint } = override?.annotations ?? {}
  return {
    readOnly,
    idempotent:
      readOnly ||
      (idempotentHint ??
        (matchesSome(config.idempotentTools, name) || isHinted(kind, definition, 'idempotentHint', config))),
    timeoutMs,
    timeoutKey: own === undefined ? ofServer : `mcpServers.${server}.toolTimeouts.${name}`,
    maxTimeout: {
      // If the call's timeout exceeds the configured maximum, the timeout also serves as the maximum.
      ms: Math.max(timeoutMs, config.maxTimeout ?? maxTimeoutMs),
      key: config.maxTimeout === undefined ? 'defaults.maxTimeout' : `mcpServers.${server}.maxTimeout`,
    },
  }
}

import type { Definition, Entry, EntryOverride } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { overridePath, type ToolOverride, type ToolSelection, toolOverrides } from '../../core/tool-overrides.ts'
import { Json } from '../../json/json.ts'
import { foldName } from '../../lib/characters.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'

type Schema = Readonly<Record<string, unknown>>

/** A definition as callers see it (V15). */
export function applyOverride(definition: Definition, override: ToolOverride): Definition {
  const { title, description, annotations } = override
  return {
    ...definition,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: overrideSchema(definition.inputSchema ?? {}, override),
    ...(Object.keys(annotations).length > 0 && {
      annotations: { ...asRecord(definition.annotations), ...annotations },
    }),
  }
}

/** A schema without the arguments that callers do not set, and with the defaults. Other members stay unchanged. */
function overrideSchema(schema: Schema, override: ToolOverride): Schema {
  const gone = removedArguments(schema, override)
  const { defaults } = override
  if (gone.size === 0 && Object.keys(defaults).length === 0) return schema
  const withDefault = (name: string, part: unknown) =>
    Object.hasOwn(defaults, name) ? { ...asRecord(part), default: defaults[name] } : part
  const reduced = (part: Schema): Schema => {
    const changes: Record<string, unknown> = {}
    if (isRecord(part.properties)) {
      const kept = Object.entries(part.properties).filter(([name]) => !gone.has(name))
      changes.properties = Object.fromEntries(kept.map(([name, inner]) => [name, withDefault(name, inner)]))
    }
    if (Array.isArray(part.required))
      changes.required = part.required.filter((name) => !gone.has(name) && !Object.hasOwn(defaults, name))
    // An alternative such as `anyOf: [{ required: [repo] }, …]` must not ask for what callers cannot set.
    for (const key of ['allOf', 'anyOf', 'oneOf'])
      if (Array.isArray(part[key])) changes[key] = part[key].map((one) => (isRecord(one) ? reduced(one) : one))
    return { ...part, ...changes }
  }
  return reduced(schema)
}

/** The arguments that callers neither see nor set. A required one stays if nothing else sets it. */
function removedArguments(schema: Schema | undefined, { hide, fixed, defaults }: ToolOverride): ReadonlySet<string> {
  const required = Array.isArray(schema?.required) ? schema.required : []
  const isUnset = (name: string) =>
    required.includes(name) && !Object.hasOwn(fixed, name) && !Object.hasOwn(defaults, name)
  return new Set([...Object.keys(fixed), ...hide.filter((name) => !isUnset(name))])
}

/** The entry with its override. `listed` has the names that the server itself uses, which no other tool can get. */
export function overriddenEntry(entry: Entry, override: ToolOverride, listed: ReadonlySet<unknown>): Entry {
  const { definition, verbatim = definition, exactSchema } = entry
  const name = override.name === undefined || listed.has(override.name) ? undefined : override.name
  return {
    ...entry,
    definition: applyOverride(definition, override),
    verbatim,
    exactSchema: exactSchema && overrideSchema(exactSchema, override),
    override: entryOverride(entry, name, override),
  }
}

function entryOverride(
  { server, name: tool, definition }: Entry,
  name: string | undefined,
  override: ToolOverride,
): EntryOverride {
  const removed = [...removedArguments(definition.inputSchema, override)]
  const settings = new Map(
    removed.map((argument) => [foldName(argument), Object.hasOwn(override.fixed, argument) ? 'fixed' : 'hide']),
  )
  const values = Object.entries({ ...override.defaults, ...override.fixed }).map(
    ([argument, value]) => [argument, `${JSON.stringify(argument)}:${JSON.stringify(value)}`] as const,
  )
  return {
    name,
    hidden: override.hidden,
    tags: override.tags,
    check(args) {
      // Compare folded names: some servers would take `Repo` for `repo`.
      const argument = Object.keys(args).find((one) => settings.has(foldName(one)))
      if (argument === undefined) return
      const rule = `${overridePath(server, tool)}.${settings.get(foldName(argument))}`
      const sentence = `Invalid arguments for ${server}.${name ?? tool}: ${quote(argument)} is set by the operator (${rule}); leave it out.`
      throw new ToolwayError('INVALID_ARGUMENTS', sentence, { server, rule })
    },
    complete(args) {
      const given = args.value
      const added = values.flatMap(([argument, text]) => (Object.hasOwn(given, argument) ? [] : [text]))
      return added.length === 0 ? args : withMembers(args, added)
    },
  }
}

/** An object with more members at its start. The bytes of the others stay as they are. */
function withMembers({ bytes, value }: Json<Record<string, unknown>>, members: readonly string[]) {
  const rest = bytes.subarray(bytes.indexOf('{') + 1)
  const separator = Object.keys(value).length > 0 ? ',' : ''
  return Json.raw<Record<string, unknown>>(Buffer.concat([Buffer.from(`{${members.join()}${separator}`), rest]))
}

/** What has no effect in the overrides of a server's tools, given those that it lists. */
export function overrideProblems(server: string, selection: ToolSelection, tools: readonly Definition[]): string[] {
  if (tools.length === 0) return []
  const listed = new Map(tools.map((tool) => [String(tool.name), tool]))
  return [...toolOverrides(selection)].flatMap(([tool, override]) => {
    const setting = overridePath(server, tool)
    const definition = listed.get(tool)
    if (!definition) return `${setting}: ${server} has no tool ${tool}${didYouMean(tool, [...listed.keys()], '')}`
    const { name, hide, fixed, defaults } = override
    const removed = removedArguments(definition.inputSchema, override)
    const declared = asRecord(definition.inputSchema?.properties)
    const unknown = (list: string, names: readonly string[]) =>
      names
        .filter((argument) => !Object.hasOwn(declared, argument))
        .map(
          (argument) =>
            `${setting}.${list}: ${tool} declares no argument ${argument}${didYouMean(argument, Object.keys(declared), '')}`,
        )
    return [
      ...(name !== undefined && listed.has(name) && name !== tool
        ? [`${setting}.name: ${server} itself has a tool ${name}; ${tool} keeps its name`]
        : []),
      ...hide
        .filter((argument) => Object.hasOwn(declared, argument) && !removed.has(argument))
        .map(
          (argument) => `${setting}.hide: ${argument} is required, so it stays visible; set it in fixed or defaults`,
        ),
      ...unknown('hide', hide),
      ...unknown('fixed', Object.keys(fixed)),
      ...unknown('defaults', Object.keys(defaults)),
    ]
  })
}

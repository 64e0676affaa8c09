import type { Definition } from '../core/entry.ts'
import { isObjectSchema } from '../wire/object-schema.ts'
import { asObject } from './introduction.ts'

/** What a list of a server holds. */
export type Listed = 'tool' | 'resource' | 'template' | 'prompt'

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
    isObject(value) && Object.entries(members).every(([name, check]) => isRight(asObject(value)[name], check))
const isRight = (value: unknown, check: Check): boolean => value === undefined || check(value)

const isMoment: Check = (value) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.test(value)
const isIcon: Check = (value) =>
  isText(asObject(value).src) &&
  having({ mimeType: isText, sizes: listOf(isText), theme: oneOf('light', 'dark') })(value)
const isArgument: Check = (value) =>
  isText(asObject(value).name) && having({ title: isText, description: isText, required: isFlag })(value)

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
const optional: Readonly<Record<Listed, Readonly<Record<string, Check>>>> = {
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
export function soundDefinition(kind: Listed, definition: Definition): Definition {
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
  const { type: _type, properties, required, ...rest } = asObject(schema)
  const named = Object.entries(asObject(properties)).map(([name, inner]) => [name, schemaObject(inner)])
  return {
    type: 'object',
    ...(properties !== undefined && { properties: Object.fromEntries(named) }),
    ...(listOf(isText)(required) && { required }),
    ...rest,
  }
}

/** A schema may be `true` or `false`, but not everybody knows. What is none says nothing. */
const schemaObject = (schema: unknown): unknown => (isObject(schema) ? schema : schema === false ? { not: {} } : {})

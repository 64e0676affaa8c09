import type { FunctionCall } from '../../core/chat.ts'
import { type AnySchema, isSchemaObject, type JsonSchemaObject, mapSubschemas } from './schema.ts'

/** What a model answers when it is asked which tools it needs (S3). */
export interface ToolSelectionResponse {
  readonly reasoning: string
  readonly selected_tools: readonly string[]
}

/** What comes of asking it to call them, in the words of OpenAI. */
export interface OpenAIFunctionCallResponse {
  readonly tool_calls?: readonly FunctionCall[]
}

/** What it answers when it has seen the results. */
export interface FinalResponse {
  readonly content: string
}

/** A tool as a model sees it. */
export interface CallableTool {
  readonly name: string
  readonly description?: string
  /** The schema of its arguments. */
  readonly parameters: JsonSchemaObject
}

const maxReasoning = 4_000
const maxContent = 32_768
/** More calls than this in one answer are no answer. */
const maxCalls = 32

const closed = (properties: object, required = Object.keys(properties)): JsonSchemaObject => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/** A selection among these tools and no others. The reasoning comes first, so that it can do some good. */
export const selectionSchema = (candidates: readonly string[]): JsonSchemaObject =>
  closed({
    reasoning: { type: 'string', maxLength: maxReasoning },
    selected_tools: {
      type: 'array',
      items: candidates.length > 0 ? { type: 'string', enum: [...candidates] } : { type: 'string' },
      maxItems: candidates.length,
    },
  })

/**
 * Calls of these tools, each with arguments of its own schema. The arguments are objects here and become text
 * afterwards (`asFunctionCalls`): inside a string, no constraint could reach them.
 */
export function callSchema(tools: readonly CallableTool[]): JsonSchemaObject {
  const definitions: Record<string, unknown> = {}
  const calls = tools.map(({ name, parameters }, index) => {
    const at = `#/properties/tool_calls/items/anyOf/${index}/properties/arguments`
    const embedded = embed(parameters, { at, key: `tool${index}` })
    for (const [key, schema] of embedded.definitions) definitions[key] = schema
    return closed({ name: { type: 'string', enum: [name] }, arguments: embedded.schema })
  })
  const items = calls.length > 0 ? { anyOf: calls } : false
  const schema = closed({ tool_calls: { type: 'array', items, maxItems: calls.length > 0 ? maxCalls : 0 } })
  return Object.keys(definitions).length > 0 ? { ...schema, $defs: definitions } : schema
}

/** An answer in words. */
export const finalSchema: JsonSchemaObject = closed({ content: { type: 'string', maxLength: maxContent } })

/** The stage of calling as it is answered to others: calls with ids, their arguments as text. */
export const functionCallResponseSchema: JsonSchemaObject = closed(
  {
    tool_calls: {
      type: 'array',
      items: closed({
        id: { type: 'string', minLength: 1 },
        type: { type: 'string', enum: ['function'] },
        function: closed({ name: { type: 'string' }, arguments: { type: 'string' } }),
      }),
    },
  },
  [],
)

/** Turns what fits `callSchema` into calls as OpenAI writes them; `newId` must never give the same id twice. */
export function asFunctionCalls(
  answer: { readonly tool_calls?: readonly { readonly name: string; readonly arguments: unknown }[] },
  newId: () => string,
): OpenAIFunctionCallResponse {
  const calls = answer.tool_calls ?? []
  return {
    tool_calls: calls.map(({ name, arguments: given }) => ({
      id: newId(),
      type: 'function',
      function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}) },
    })),
  }
}

/** A schema that has become part of another, and the definitions that it brings along. */
interface EmbeddedSchema {
  readonly schema: JsonSchemaObject
  readonly definitions: readonly (readonly [string, AnySchema])[]
}

/**
 * Makes a schema fit to stand inside another one: what it defines goes to the root under names of its own, and its
 * references lead to where things then are. Its ids stay behind, as they would change what references mean.
 */
function embed(schema: JsonSchemaObject, place: { readonly at: string; readonly key: string }): EmbeddedSchema {
  const rename = (name: string): string => `${place.key}_${name}`
  const moved = (reference: string): string => {
    if (reference === '#') return place.at
    const definition = /^#\/(?:\$defs|definitions)\/([^/]+)(.*)$/s.exec(reference)
    if (definition) return `#/$defs/${rename(definition[1] as string)}${definition[2]}`
    return reference.startsWith('#/') ? place.at + reference.slice(1) : reference
  }
  const change = (inner: AnySchema): AnySchema => {
    if (typeof inner === 'boolean') return inner
    const { $id: _id, id: _oldId, $schema: _dialect, ...rest } = mapSubschemas(inner, change)
    return typeof rest.$ref === 'string' ? { ...rest, $ref: moved(rest.$ref) } : rest
  }
  const { $defs, definitions, ...own } = change(schema) as JsonSchemaObject
  const brought = [definitions, $defs].filter(isSchemaObject).flatMap((all) => Object.entries(all))
  return { schema: own, definitions: brought.map(([name, inner]) => [rename(name), inner as AnySchema]) }
}

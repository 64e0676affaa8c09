import type { FunctionCall } from '../../core/chat.ts'
import { isRecord } from '../../lib/is-record.ts'
import { type AnySchema, type JsonSchemaObject, mapSubschemas } from './schema.ts'

/** The answer from the selection stage (S3). */
export interface ToolSelectionResponse {
  readonly reasoning: string
  readonly selected_tools: readonly string[]
}

/** The answer from the call stage, in OpenAI's format. */
export interface OpenAIFunctionCallResponse {
  readonly tool_calls?: readonly FunctionCall[]
}

/** The answer from the interpretation stage. */
export interface FinalResponse {
  readonly content: string
}

/** A tool as a model sees it. */
export interface CallableTool {
  readonly name: string
  readonly description?: string
  /** The input schema. */
  readonly parameters: JsonSchemaObject
}

const maxReasoning = 4_000
const maxContent = 32_768
export const maxCallsAtOnce = 32

const closedObject = (properties: object): JsonSchemaObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

/** The schema for a selection among these tools. The reasoning comes first, so that it can inform the selection. */
export const selectionSchema = (candidates: readonly string[]): JsonSchemaObject =>
  closedObject({
    reasoning: { type: 'string', maxLength: maxReasoning },
    selected_tools: {
      type: 'array',
      items: candidates.length > 0 ? { type: 'string', enum: [...candidates] } : { type: 'string' },
      maxItems: candidates.length,
    },
  })

/**
 * The schema for calls to these tools, each with arguments that match the tool's schema. Arguments are objects here and
 * become text later (`asFunctionCalls`), because a constraint does not apply to JSON inside a string.
 */
export function callSchema(tools: readonly CallableTool[]): JsonSchemaObject {
  const definitions: Record<string, unknown> = {}
  const calls = tools.map(({ name, parameters }, index) => {
    const at = `#/properties/tool_calls/items/anyOf/${index}/properties/arguments`
    const embedded = embedSchema(parameters, at, `tool${index}`)
    Object.assign(definitions, embedded.definitions)
    return closedObject({ name: { type: 'string', enum: [name] }, arguments: embedded.schema })
  })
  const items = calls.length > 0 ? { anyOf: calls } : false
  const schema = closedObject({ tool_calls: { type: 'array', items, maxItems: calls.length > 0 ? maxCallsAtOnce : 0 } })
  return Object.keys(definitions).length > 0 ? { ...schema, $defs: definitions } : schema
}

export const finalSchema: JsonSchemaObject = closedObject({ content: { type: 'string', maxLength: maxContent } })

/** Converts an answer that matches `callSchema` to OpenAI's format. */
export function asFunctionCalls(
  answer: { readonly tool_calls?: readonly { readonly name: string; readonly arguments: unknown }[] },
  newId: () => string,
): OpenAIFunctionCallResponse {
  return {
    tool_calls: answer.tool_calls?.map(({ name, arguments: args }) => functionCallOf(newId(), name, args ?? {})),
  }
}

export const functionCallOf = (id: string, name: string, args: unknown): FunctionCall => ({
  id,
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
})

/**
 * Embeds a schema in another: definitions move to the root under unique names, and references are updated. Ids are
 * dropped, because they would change what references point to.
 */
function embedSchema(schema: JsonSchemaObject, at: string, key: string) {
  const rename = (name: string): string => `${key}_${name}`
  const moved = (reference: string): string => {
    if (reference === '#') return at
    const definition = /^#\/(?:\$defs|definitions)\/([^/]+)(.*)$/s.exec(reference)
    if (definition) return `#/$defs/${rename(definition[1] as string)}${definition[2]}`
    return reference.startsWith('#/') ? at + reference.slice(1) : reference
  }
  const change = (inner: AnySchema): AnySchema => {
    if (typeof inner === 'boolean') return inner
    const { $id: _id, id: _oldId, $schema: _dialect, ...rest } = mapSubschemas(inner, change)
    return typeof rest.$ref === 'string' ? { ...rest, $ref: moved(rest.$ref) } : rest
  }
  const { $defs, definitions, ...own } = change(schema) as JsonSchemaObject
  const ownDefinitions = [definitions, $defs].filter(isRecord).flatMap((all) => Object.entries(all))
  return { schema: own, definitions: Object.fromEntries(ownDefinitions.map(([name, inner]) => [rename(name), inner])) }
}

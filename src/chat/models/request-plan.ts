import type { ChatMessage } from '../../core/chat.ts'
import { parseJson } from '../../json/parse-json.ts'
import { contentHash, isInexpressible, memoizeByContent } from '../constrain/conversion.ts'
import { bestGrammar } from '../constrain/gbnf/grammar.ts'
import { flatRoot } from '../constrain/sanitize-schema.ts'
import type { JsonSchemaObject } from '../constrain/schema.ts'
import { type CallableTool, callSchema } from '../constrain/stage-schemas.ts'
import { strictify } from '../constrain/strict/strictify.ts'
import type { Constraint, ConstraintForm, ModelRequest, ToolChoice } from './model.ts'
import type { SentRequest, ServerProfile } from './server-profile.ts'

export type PlanningProfile = Pick<ServerProfile, 'kind' | 'capabilities' | 'formsFor' | 'toolForms'>

export interface RequestPlan extends SentRequest {
  readonly messages: readonly ChatMessage[]
  /** Request fields for this form. */
  readonly fields: object
  readonly constraint?: ConstraintForm
  /** Set if the answer is an object with calls, because the request offers no tools. */
  readonly callsAsText?: true
  /** Set if the request contains schemas of tools, which may be a caller's own. */
  readonly offersTools?: true
  /** Removes from an answer, or from a tool's arguments, what this form added. */
  restore(value: unknown, tool?: string): unknown
}

type Messages = readonly ChatMessage[]

const strictSchema = memoizeByContent((schema: JsonSchemaObject) => strictify(schema))
const withoutRestoring = (value: unknown): unknown => value

/** The forms in which the request can be expressed, strongest first. */
export function* plansFor(request: ModelRequest, profile: PlanningProfile): Generator<RequestPlan> {
  if (request.constraint) yield* constraintPlans(request.constraint, request.messages, profile)
  else if (request.tools?.length)
    yield* withTools(request.tools, request.toolChoice ?? 'auto', request.messages, profile)
  else yield { content: '', messages: request.messages, fields: {}, restore: withoutRestoring }
}

function* constraintPlans(
  constraint: Constraint,
  messages: Messages,
  profile: PlanningProfile,
): Generator<RequestPlan> {
  const content = contentHash(constraint.schema)
  for (const form of profile.formsFor(content)) {
    const sent = constraintRequest(form, constraint, messages, profile)
    if (sent) yield { restore: withoutRestoring, ...sent, form: { constraint: form }, constraint: form, content }
  }
}

type Sent = Pick<RequestPlan, 'messages' | 'fields'> & Partial<Pick<RequestPlan, 'restore'>>

/** A constraint in one form; `undefined` if this form cannot express it. */
function constraintRequest(
  form: ConstraintForm,
  { name, schema, instruction = schemaInstruction(schema) }: Constraint,
  messages: Messages,
  profile: PlanningProfile,
): Sent | undefined {
  const instructedMessages = instruction === '' ? messages : withInstruction(messages, instruction)
  try {
    switch (form) {
      case 'strict': {
        const { schema: closed, restore } = strictSchema(schema)
        return { messages, fields: { response_format: jsonSchema(name, closed, true) }, restore }
      }
      case 'schema':
        return { messages, fields: { response_format: jsonSchema(name, schema, false) } }
      case 'grammar': {
        const fields = profile.capabilities.grammar(bestGrammar(schema).gbnf)
        // Also describe the schema to a server of unknown kind, because it may ignore the grammar.
        return { messages: profile.kind === 'unknown' ? instructedMessages : messages, fields }
      }
      case 'json_object':
        return { messages: instructedMessages, fields: { response_format: { type: 'json_object' } } }
      case 'prompt':
        return { messages: instructedMessages, fields: {} }
    }
  } catch (error) {
    if (isInexpressible(error)) return undefined
    throw error
  }
}

const jsonSchema = (name: string, schema: JsonSchemaObject, isStrict: boolean) => ({
  type: 'json_schema',
  json_schema: { name, strict: isStrict, schema },
})

function* withTools(
  offered: readonly CallableTool[],
  choice: ToolChoice,
  messages: Messages,
  profile: PlanningProfile,
): Generator<RequestPlan> {
  // A stable order lets servers reuse their prompt cache.
  const tools = offered.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  const content = contentHash(tools)
  for (const form of profile.toolForms(content)) {
    if (form === 'schema') {
      yield* constrainedCalls(tools, choice, messages, profile)
      continue
    }
    const sent = form === 'strict' ? strictTools(tools) : form === 'flat' ? flatTools(tools) : plainTools(tools)
    if (!sent) continue
    const fields = { tools: sent.definitions, tool_choice: choice }
    yield { form: { tools: form }, content, messages, fields, restore: sent.restore, offersTools: true }
  }
}

const definition = ({ name, description, parameters }: CallableTool, strict?: true): object => ({
  type: 'function',
  function: { name, description, parameters, strict },
})

const plainTools = (tools: readonly CallableTool[]) => ({
  definitions: tools.map((tool) => definition(tool)),
  restore: withoutRestoring,
})

/** Tools without alternatives at the root of their schemas; `undefined` if none has any. */
function flatTools(tools: readonly CallableTool[]) {
  const flat = tools.map((tool) => ({ ...tool, parameters: flatRoot(tool.parameters) }))
  return flat.some(({ parameters }, index) => parameters !== tools[index]?.parameters) ? plainTools(flat) : undefined
}

/** Uses strict mode for each tool whose schema allows it; `undefined` if none does. */
function strictTools(tools: readonly CallableTool[]) {
  const restorers = new Map<string, (value: unknown) => unknown>()
  const definitions = tools.map((tool) => {
    try {
      const { schema, restore } = strictSchema(tool.parameters)
      restorers.set(tool.name, restore)
      return definition({ ...tool, parameters: schema }, true)
    } catch (error) {
      if (isInexpressible(error)) return definition(tool)
      throw error
    }
  })
  if (restorers.size === 0) return undefined
  const restore: RequestPlan['restore'] = (value, tool = '') => restorers.get(tool)?.(value) ?? value
  return { definitions, restore }
}

/** Plans that offer no tools but constrain the answer to calls or text (only to calls if one is required). */
function* constrainedCalls(
  tools: readonly CallableTool[],
  choice: ToolChoice,
  messages: Messages,
  profile: PlanningProfile,
): Generator<RequestPlan> {
  const mustCall = choice === 'required'
  const calls = callSchema(tools)
  const { tool_calls: list } = calls.properties as { readonly tool_calls: object }
  const schema = mustCall
    ? { ...calls, properties: { tool_calls: { ...list, minItems: 1 } } }
    : { ...calls, properties: { content: { type: 'string' }, tool_calls: list }, required: [] }
  const instructedMessages = withInstruction(withoutToolMessages(messages), toolsInstruction(tools, mustCall))
  for (const plan of constraintPlans({ name: 'calls', schema }, instructedMessages, profile))
    yield { ...plan, callsAsText: true, offersTools: true }
}

/** Adds an instruction to the first system message, because many chat templates support only one. */
function withInstruction(messages: Messages, instruction: string): Messages {
  const [first, ...rest] = messages
  if (first?.role !== 'system' || typeof first.content !== 'string')
    return [{ role: 'system', content: instruction }, ...messages]
  return [{ role: 'system', content: `${first.content}\n\n${instruction}` }, ...rest]
}

/** An instruction that describes a schema, because the server does not enforce it. */
const schemaInstruction = (schema: JsonSchemaObject): string =>
  `Answer with one JSON object and nothing else: no explanation, no code fence. It must match this JSON Schema:\n${JSON.stringify(schema)}`

function toolsInstruction(tools: readonly CallableTool[], mustCall: boolean): string {
  const listed = tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters }))
  const how = mustCall
    ? 'Answer with the tool calls as {"tool_calls": [{"name": …, "arguments": {…}}]}.'
    : 'To call tools, answer with {"tool_calls": [{"name": …, "arguments": {…}}]}; otherwise answer with {"content": "…"}.'
  return `You can call these tools:\n${listed.join('\n')}\n${how}`
}

/** Converts calls and results to plain text, for servers without tool support. */
export function withoutToolMessages(messages: Messages): Messages {
  const names = new Map<string, string>()
  return messages.map((message): ChatMessage => {
    if (message.role === 'tool') {
      return { role: 'user', content: `Result of ${names.get(message.tool_call_id) ?? 'a tool'}:\n${message.content}` }
    }
    if (message.role !== 'assistant' || !message.tool_calls?.length) return message
    for (const { id, function: called } of message.tool_calls) names.set(id, called.name)
    const calls = message.tool_calls.map(({ function: { name, arguments: args } }) => {
      return { name, arguments: parseOrText(args) }
    })
    // JSON.stringify omits `content` if it is undefined.
    return { role: 'assistant', content: JSON.stringify({ content: message.content || undefined, tool_calls: calls }) }
  })
}

export const hasReasoning = (message: ChatMessage): boolean =>
  message.role === 'assistant' &&
  (['reasoning_content', 'reasoning', 'reasoning_details'].some((member) => member in message) ||
    (message.tool_calls ?? []).some((call) => 'extra_content' in call))

/** Removes what the model server added to the model's message. */
export function withoutReasoning(message: ChatMessage): ChatMessage {
  if (!hasReasoning(message) || message.role !== 'assistant') return message
  const {
    reasoning_content: _text,
    reasoning: _other,
    reasoning_details: _details,
    tool_calls: calls,
    ...rest
  } = message
  return calls ? { ...rest, tool_calls: calls.map(({ extra_content: _extra, ...call }) => call) } : rest
}

function parseOrText(text: string): unknown {
  const value = parseJson(text)
  return value === undefined ? text : value
}

import * as z from 'zod'
import type { ChatMessage, ChatRequest, ContentPart } from '../../core/chat.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { extentOf, maxDepth } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { badRequest } from './chat.ts'

const textPart = z.object({ type: z.literal('text'), text: z.string() })
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const imagePart = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string().min(1) }) })
const audioPart = z.object({
  type: z.literal('input_audio'),
  input_audio: z.object({ data: z.string(), format: z.string() }),
})

const oneOfTypes = (...types: readonly string[]) => ({ error: `its "type" must be one of ${types.join(', ')}` })

const contentParts: z.ZodType<ContentPart[]> = z
  .array(z.discriminatedUnion('type', [textPart, imagePart, audioPart], oneOfTypes('text', 'image_url', 'input_audio')))
  .min(1)

const textContents = z
  .array(z.discriminatedUnion('type', [textPart, refusalPart], oneOfTypes('text', 'refusal')))
  .transform((all) => all.map((part) => (part.type === 'text' ? part.text : part.refusal)).join(''))

const userContent = z.union([z.string(), contentParts])
const onlyText = z.union([z.string(), textContents])

const functionCallSchema = z.object({
  id: z.string().min(1),
  type: z.literal('function', { error: 'only function calls are supported' }),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})

const system = z
  .object({ role: z.enum(['system', 'developer']), content: onlyText })
  .transform(({ content }): ChatMessage => ({ role: 'system', content }))

const user = z.object({ role: z.literal('user'), content: userContent })

const assistant = z
  .object({
    role: z.literal('assistant'),
    content: onlyText.nullish(),
    refusal: z.string().nullish(),
    tool_calls: z.array(functionCallSchema).nullish(),
  })
  .transform(({ content, refusal, tool_calls }): ChatMessage => {
    const made = tool_calls && tool_calls.length > 0 ? { tool_calls } : {}
    return { role: 'assistant', content: content ?? refusal ?? null, ...made }
  })

const toolMessage = z.object({ role: z.literal('tool'), tool_call_id: z.string().min(1), content: onlyText })

/** The messages in an OpenAI request. Unknown members, such as names and hints, are dropped. */
const messageList: z.ZodType<ChatMessage[]> = z
  .array(
    z.discriminatedUnion('role', [system, user, assistant, toolMessage], {
      error: 'its "role" must be one of system, developer, user, assistant, tool',
    }),
  )
  .min(1)
  .superRefine((conversation, context) => {
    const [index, message] = unansweredIn(conversation) ?? []
    if (index !== undefined) context.addIssue({ code: 'custom', path: [index], message })
  })

/** Finds a call without a result, or a result without a call. Models respond unpredictably to such conversations. */
function unansweredIn(conversation: readonly ChatMessage[]): readonly [at: number, message: string] | undefined {
  const open = new Set<string>()
  for (const [index, message] of conversation.entries()) {
    if (message.role === 'tool') {
      if (open.delete(message.tool_call_id)) continue
      return [index, 'its "tool_call_id" does not match a call in the preceding assistant message']
    }
    if (open.size > 0) return [index, missingResults(open)]
    if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) open.add(id)
  }
  return open.size > 0 ? [conversation.length - 1, missingResults(open)] : undefined
}

const missingResults = (open: ReadonlySet<string>): string =>
  `each tool call must be followed by a "tool" message; missing: ${[...open].slice(0, 3).join(', ')}`

interface ChatCompletionRequest {
  /** The part of the request that is passed to the chat. */
  readonly asked: Omit<ChatRequest, 'id' | 'caller' | 'peer' | 'signal' | 'trace'>
  readonly includeUsage: boolean
  /** The agent named in the body. It takes precedence over the header and the query. */
  readonly agent: string | undefined
}

const maxTools = fixedLimits.chatTools.value
const maxToolPattern = 200

const offeredTool = z
  .object({
    type: z.literal('function', { error: 'only tools of type "function" are supported' }),
    function: z.object({
      name: z.string().regex(/^[\w-]{1,64}$/, 'a name must have 1 to 64 letters, digits, _ or -'),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish(),
    }),
  })
  .transform(({ function: { name, description, parameters } }) => ({
    name,
    ...(description && { description }),
    ...(parameters && { parameters }),
  }))

const toolList = z
  .array(offeredTool)
  .max(maxTools)
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'their names must be unique')

const requestBody = z.object({
  model: z.string().min(1).nullish(),
  messages: messageList,
  tools: toolList.nullish(),
  tool_choice: z
    .union([
      z.enum(['auto', 'none', 'required'], { error: 'use auto, none, required, or the name of a tool in `tools`' }),
      z
        .object({ type: z.literal('function'), function: z.object({ name: z.string() }) })
        .transform(({ function: { name } }) => ({ tool: name })),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  // Reject unknown keys here: only Toolway defines this member, so an unknown key is a mistake.
  toolway: z
    .strictObject({
      mode: z.enum(['staged', 'agent']).nullish(),
      agent: z.string().min(1).nullish(),
      only: z.array(z.string().min(1).max(maxToolPattern)).max(maxTools).nullish(),
    })
    .nullish(),
})

/** Parses and validates a request. Throws an error that names the invalid member. */
export function readRequest(bytes: Buffer): ChatCompletionRequest {
  const value = parseBody(bytes)
  if (!isRecord(value)) throw badRequest('The body must be a JSON object.')
  refuseUnsupported(value)
  const result = requestBody.safeParse(value)
  if (!result.success) throw unfit(result.error.issues[0] as z.core.$ZodIssue)
  const { model, tools, tool_choice, temperature, stream, stream_options, toolway, ...rest } = result.data
  const named = typeof tool_choice === 'object' ? tool_choice?.tool : undefined
  if (named !== undefined && !tools?.some(({ name }) => name === named)) {
    const message = '"tool_choice" is invalid: it must name one of your own tools in "tools".'
    throw badRequest(message, { param: 'tool_choice' })
  }
  const maxTokens = rest.max_completion_tokens ?? rest.max_tokens
  return {
    asked: {
      messages: rest.messages,
      stream: stream === true,
      ...(model && { model }),
      ...(tools && tools.length > 0 && { tools }),
      ...(tool_choice && { toolChoice: tool_choice }),
      ...(rest.parallel_tool_calls === false && { parallelToolCalls: false }),
      ...(toolway?.mode && { mode: toolway.mode }),
      ...(toolway?.only && { only: toolway.only }),
      ...(typeof maxTokens === 'number' && { maxTokens }),
      ...(typeof temperature === 'number' && { temperature }),
    },
    includeUsage: stream_options?.include_usage === true,
    agent: toolway?.agent ?? undefined,
  }
}

function parseBody(bytes: Buffer): unknown {
  try {
    // Limit the depth, because the tools are later serialized again for the model by a recursive function.
    if (extentOf(bytes).depth > maxDepth) throw badRequest(`The body is nested more than ${maxDepth} levels deep.`)
    return jsonValue(bytes.toString('utf8'))
  } catch (thrown) {
    throw thrown instanceof SyntaxError ? badRequest('The body is not valid JSON.') : thrown
  }
}

function unfit(issue: z.core.$ZodIssue): Error {
  const { path, message } = nearestIssue(issue)
  const param = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .slice(1)
  return badRequest(`"${param}" is invalid: ${message.replace(/^Invalid input: /, '')}.`, { param })
}

/** The issue to report. For a union, this is the issue from the alternative that matched deepest. */
function nearestIssue(issue: z.core.$ZodIssue): { readonly path: PropertyKey[]; readonly message: string } {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue
  const inner = issue.errors.map(([first]) => nearestIssue(first as z.core.$ZodIssue))
  const { path, message } = inner.reduce((best, one) => (one.path.length > best.path.length ? one : best))
  return { path: [...issue.path, ...path], message }
}

interface Unsupported {
  /** Whether the value only asks for the default behaviour, which no value does without this member. */
  harmless?(value: unknown): boolean
  /** What to do instead; the last part of the error message. */
  readonly instead: string
}

/**
 * Unsupported parameters that would change the answer. They are rejected, because ignoring them would silently give a
 * different answer. Other unknown parameters (seed, top_p, user, metadata …) are ignored, as other servers do.
 */
const unsupportedMembers: Readonly<Record<string, Unsupported>> = {
  n: { harmless: (value) => value === 1, instead: 'only one answer per request is supported: omit it' },
  logprobs: { harmless: (value) => value === false, instead: 'log probabilities are not available: omit it' },
  top_logprobs: { harmless: (value) => value === 0, instead: 'log probabilities are not available: omit it' },
  stop: {
    harmless: (value) => Array.isArray(value) && value.length === 0,
    instead: 'omit it and truncate the answer yourself',
  },
  response_format: {
    harmless: (value) => (value as { type?: unknown }).type === 'text',
    instead:
      'answers are text ({"type": "text"}): describe the format in a message, or offer a tool with matching parameters',
  },
  tool_choice: {
    harmless: (value) => typeof value !== 'object' || (value as { type?: unknown }).type === 'function',
    instead: 'use auto, none, required, or the name of one of your tools',
  },
  functions: { instead: 'use tools' },
  function_call: { instead: 'use tool_choice' },
  modalities: {
    harmless: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
    instead: 'answers are text',
  },
  audio: { instead: 'answers are text' },
  web_search_options: { instead: 'connect a server that has a search tool' },
}

function refuseUnsupported(body: Readonly<Record<string, unknown>>): void {
  for (const [name, { harmless, instead }] of Object.entries(unsupportedMembers)) {
    const value = body[name]
    if (value === undefined || value === null || harmless?.(value)) continue
    throw badRequest(`"${name}" is not supported: ${instead}.`, { param: name, code: 'unsupported_parameter' })
  }
}

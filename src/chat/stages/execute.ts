import { randomUUID } from 'node:crypto'
import type { Served } from '../../core/access.ts'
import type { Call, Trail } from '../../core/call.ts'
import type { ChatEvent, ChatMessage, Reasoning } from '../../core/chat.ts'
import { endWith } from '../../core/deadline.ts'
import type { Entry } from '../../core/entry.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Content, Result } from '../../core/result.ts'
import { isRecord } from '../../lib/is-record.ts'
import { matches } from '../../lib/wildcard.ts'
import type { ChatRun } from '../chat-run.ts'
import { displayLine, truncateText } from '../conversation.ts'
import type { ParsedCall } from '../parse-answer.ts'

export interface CallResult {
  readonly call: ParsedCall['call']
  readonly text: string
  readonly isError: boolean
  /** A hint for the model that is added to the result. */
  readonly hint?: string
}

/** Runs calls in parallel and returns their results in call order. Failures and invalid calls become results (S5). */
export async function* execute(
  run: ChatRun,
  calls: readonly ParsedCall[],
): AsyncGenerator<ChatEvent, readonly CallResult[]> {
  const { clock, signal, config } = run
  const ran = new Map<ParsedCall, CallResult>()
  const running = new Map<string, Promise<CallEnd>>()

  const begin = async (id: string, call: ParsedCall, served: Served): Promise<CallEnd> => {
    const start = clock.monotonic()
    const trail: Trail = { steps: [] }
    const { text, isError } = await runCall(run, { id, trail }, call, served)
    ran.set(call, { call: call.call, text, isError })
    const durationMs = clock.monotonic() - start - (trail.waits?.endedMs ?? 0)
    return { id, event: { kind: 'result', call: call.call.id, isError, durationMs, text: displayLine(text) } }
  }

  async function* nextEnd(): AsyncGenerator<ChatEvent> {
    const { id, event } = await endWith(signal, Promise.race(running.values()))
    running.delete(id)
    yield event
  }

  for (const call of calls) {
    const offered = call.problem === undefined ? call.tool?.served : undefined
    const served = call.tool ? offered : await deniedTool(run, call)
    if (!served) {
      const text = `Error: ${call.problem ?? 'The client runs this tool.'}`
      ran.set(call, { call: call.call, text, isError: true })
      continue
    }
    while (running.size >= config.parallel) yield* nextEnd()
    const { name, entry } = served
    const id = randomUUID()
    yield { kind: 'call', call: call.call.id, id, name, server: entry.server, arguments: call.arguments }
    running.set(id, begin(id, call, served))
  }
  while (running.size > 0) yield* nextEnd()
  return calls.map((call) => ran.get(call) as CallResult)
}

interface CallEnd {
  readonly id: string
  readonly event: ChatEvent
}

/**
 * The tool that a model called although the caller may not use it: the pipeline refuses and audits the call. The record
 * of a name that nothing has is left by the lookup.
 */
async function deniedTool({ access, request, signal }: ChatRun, { call }: ParsedCall): Promise<Served | undefined> {
  const view = access.view(request.caller)
  // Servers had their time to start when the tools were discovered.
  const options = { parent: request.id, signal, timeoutMs: 1 }
  const found = await view.resolve('tool', call.function.name, options).catch(() => undefined)
  const isAllowed = view.list('tool').some(({ entry }) => entry === found?.entry)
  return isAllowed ? undefined : found
}

/** Runs one call. Never rejects: a failure becomes a result for the model. */
async function runCall(
  run: ChatRun,
  made: Pick<Call, 'id' | 'trail'>,
  { json }: ParsedCall,
  { entry, restore }: Served,
): Promise<Omit<CallResult, 'call'>> {
  const { access, request, signal, config, log } = run
  const approval = approvalRule(config.approve, entry)
  try {
    const result = await access.handle({
      ...made,
      parent: request.id,
      caller: request.caller,
      entry,
      input: { arguments: restore ? restore(json) : json, meta: {} },
      signal,
      peer: request.peer,
      trace: request.trace,
      approval,
    })
    return { text: resultForModel(result, config.maxResult), isError: result.isError }
  } catch (thrown) {
    return { text: failureText(thrown, log, `${entry.server}.${entry.name}`, config.maxResult), isError: true }
  }
}

/** The rule that requires approval for a tool, if any. */
function approvalRule(patterns: readonly string[], { server, name, traits }: Entry): string | undefined {
  const means = (pattern: string): boolean =>
    pattern === 'writes' ? !traits.readOnly : matches(pattern, `${server}.${name}`)
  const index = patterns.findIndex(means)
  return index < 0 ? undefined : `chat.approve[${index}]`
}

/** One round as messages: the model's text, reasoning and calls, and their results. */
export const roundMessages = (
  content: string,
  calls: readonly ParsedCall[],
  ran: readonly Omit<CallResult, 'isError'>[],
  reasoning?: Reasoning,
): readonly ChatMessage[] => [
  {
    role: 'assistant',
    content: content === '' ? null : content,
    ...reasoning,
    tool_calls: calls.map(({ call }) => call),
  },
  ...ran.map(({ call, text, hint }): ChatMessage => {
    return { role: 'tool', tool_call_id: call.id, content: hint === undefined ? text : `${text}\n(${hint})` }
  }),
]

/** The result as text for the model: its text, or structured content if it has no text. Other parts are described. */
export function resultForModel({ body, isError }: Result, maxBytes: number): string {
  const { content, structuredContent } = body.exact
  const parts = Array.isArray(content) ? (content.filter(isRecord) as unknown as Content[]) : []
  const texts = parts.map((part) => partText(part) ?? `[${describePart(part)}]`)
  const hasText = parts.some((part) => partText(part) !== undefined)
  if (!hasText && structuredContent !== undefined) texts.unshift(JSON.stringify(structuredContent))
  const whole = texts.join('\n') || '(The tool returned an empty result.)'
  return truncateText(isError ? asError(whole) : whole, maxBytes)
}

/** A failed call as text for the model. The cause of an internal error is only logged. */
export function failureText(thrown: unknown, log: Log, tool: string, maxBytes: number): string {
  if (thrown instanceof ServerError)
    return truncateText(asError(textOfValue(thrown.error.value.message) ?? 'no reason given'), maxBytes)
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') log.error({ tool, err: error.cause ?? error }, 'a tool call in the chat loop failed')
  return asError(error.message)
}

/** Puts "Error" in front of the text, so that the model notices the failure. */
const asError = (text: string): string => (/^error\b/i.test(text) ? text : `Error: ${text}`)

/** Converts a value to text, because servers may send anything in place of a string. */
const textOfValue = (value: unknown): string | undefined => (typeof value === 'string' ? value : JSON.stringify(value))

function partText(part: Content): string | undefined {
  if (part.type === 'text') return textOfValue(part.text) ?? ''
  const { text } = part.type === 'resource' && isRecord(part.resource) ? part.resource : {}
  return typeof text === 'string' ? text : undefined
}

function describePart(part: Content): string {
  const typed = (mimeType: unknown, data: unknown) =>
    `${textOfValue(mimeType) ?? 'of unknown type'}, ${base64Size(data)}`
  switch (part.type) {
    case 'image':
    case 'audio':
      return `${part.type}, ${typed(part.mimeType, part.data)}`
    case 'resource_link':
      return `resource ${textOfValue(part.uri)}${part.description === undefined ? '' : `: ${textOfValue(part.description)}`}`
    case 'resource': {
      const { uri, blob, mimeType } = isRecord(part.resource) ? part.resource : {}
      return `resource ${textOfValue(uri)}, ${typed(mimeType, blob)}`
    }
    default:
      return `content of type ${textOfValue(part.type)}`
  }
}

/** The size of base64 data. */
const base64Size = (data: unknown): string =>
  typeof data === 'string' ? `${Math.floor((data.length * 3) / 4)} bytes` : 'of unknown size'

import { randomUUID } from 'node:crypto'
import { type Caller, type Peer, quietPeer } from '../core/call.ts'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest } from '../core/chat.ts'
import { Json } from '../json/json.ts'

/** A complete answer, with the tool calls made for it. */
export interface ChatAnswer extends Omit<ChatEnd, 'kind'> {
  readonly text: string
  /** The tool calls that ran, in the order in which they started. */
  readonly calls: readonly AnswerCall[]
}

export interface AnswerCall {
  /** The call's id in the call log, audit and traces. */
  readonly id?: string
  readonly name: string
  readonly server: string
  readonly arguments: unknown
  readonly isError: boolean
  readonly durationMs: number
  /** The beginning of the result text. */
  readonly text: string
}

export interface AskOptions {
  readonly signal?: AbortSignal
}

/** A question, or a whole conversation. */
type ChatInput = string | readonly ChatMessage[]

/** An immutable builder: each `with…` method returns a new one. */
export interface ChatBuilder {
  /** Selects a model by its name in the configuration. */
  withModel(name: string): ChatBuilder
  withMode(mode: 'staged' | 'agent'): ChatBuilder
  /** Offers only tools that match one of these patterns: `server.tool`, with `*` as a wildcard. */
  withTools(...patterns: readonly string[]): ChatBuilder
  withSystem(text: string): ChatBuilder
  /** Sets the maximum number of rounds in the agent loop. */
  withMaxSteps(maxSteps: number): ChatBuilder
  /** Lets the model run code in the sandbox (S7). */
  withCodeExecution(options?: { readonly environment?: string; readonly timeoutMs?: number }): ChatBuilder
  /** Sets the function that approves calls. Without one, calls that need a person's approval are refused. */
  withApproval(approve: (question: string) => boolean | Promise<boolean>): ChatBuilder
  /** Acts as an agent from the configuration. */
  asAgent(name: string): ChatBuilder
  ask(input: ChatInput, options?: AskOptions): Promise<ChatAnswer>
  /** Streams the answer. Ending the iteration cancels the answer. */
  stream(input: ChatInput, options?: AskOptions): AsyncIterable<ChatEvent>
}

interface Choices extends Pick<ChatRequest, 'model' | 'mode' | 'only' | 'maxSteps' | 'codeExecution'> {
  readonly system?: string
  readonly agent?: string
  readonly approve?: (question: string) => boolean | Promise<boolean>
}

/**
 * Creates a builder for questions to models, which can use the gateway's tools.
 *
 * @example
 * ```ts
 * await using gateway = await createGateway(await loadConfig({ env: process.env, cwd: process.cwd() }), { log })
 * const { text } = await createChat(gateway).withCodeExecution().ask('What is the 50th prime?')
 * ```
 */
export const createChat = (gateway: ChatGateway): ChatBuilder => chatBuilder(gateway, {})

function chatBuilder(gateway: ChatGateway, choices: Choices): ChatBuilder {
  const next = (more: Choices) => chatBuilder(gateway, { ...choices, ...more })
  const { system, agent, approve, ...own } = choices

  const events = (input: ChatInput, stream: boolean, { signal = new AbortController().signal }: AskOptions) => {
    const conversation: readonly ChatMessage[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
    const messages: readonly ChatMessage[] =
      system === undefined ? conversation : [{ role: 'system', content: system }, ...conversation]
    const caller = gateway.localAs(agent)
    // Read `gateway.chat` on each call: a reload replaces it.
    return gateway.chat.answer({
      ...own,
      id: randomUUID(),
      caller: approve ? { ...caller, capabilities: { ...caller.capabilities, elicitation: {} } } : caller,
      peer: peerOf(approve),
      signal,
      messages,
      stream,
    })
  }

  return {
    withModel: (model) => next({ model }),
    withMode: (mode) => next({ mode }),
    withTools: (...only) => next({ only }),
    withSystem: (system) => next({ system }),
    withMaxSteps: (maxSteps) => next({ maxSteps }),
    withCodeExecution: (codeExecution = {}) => next({ codeExecution }),
    withApproval: (approve) => next({ approve }),
    asAgent: (agent) => next({ agent }),
    ask: (input, more = {}) => wholeAnswer(events(input, false, more)),
    stream: (input, more = {}) => events(input, true, more),
  }
}

async function wholeAnswer(events: AsyncIterable<ChatEvent>): Promise<ChatAnswer> {
  const texts: string[] = []
  const calls = new Map<string, AnswerCall>()
  let end: Omit<ChatEnd, 'kind'> | undefined
  for await (const event of events) {
    if (event.kind === 'text') texts.push(event.text)
    else if (event.kind === 'call') {
      const { kind: _, call, ...begun } = event
      calls.set(call, { ...begun, isError: false, durationMs: 0, text: '' })
    } else if (event.kind === 'result') {
      const { isError, durationMs, text } = event
      const begun = calls.get(event.call)
      if (begun) calls.set(event.call, { ...begun, isError, durationMs, text })
    } else if (event.kind === 'end') {
      const { kind: _, ...rest } = event
      end = rest
    }
  }
  if (!end) throw new TypeError('the model stream ended without an end event')
  return { ...end, text: texts.join(''), calls: [...calls.values()] }
}

/** A peer that passes approval questions to `approve` instead of to a client. */
const peerOf = (approve: Choices['approve']): Peer =>
  quietPeer(async (method, params) => {
    const { message, requestedSchema } = params.value as { message?: string; requestedSchema?: { properties?: object } }
    // Only approvals can be answered here; decline every other question.
    const isForYes = method === 'elicitation/create' && 'approve' in (requestedSchema?.properties ?? {})
    const isAllowed = isForYes && approve !== undefined && (await approve(message ?? ''))
    return Json.of(isAllowed ? { action: 'accept', content: { approve: true } } : { action: 'decline' })
  })

interface ChatGateway {
  /** Answers questions. If no models are configured, every question fails with an explanation. */
  readonly chat: Chat
  /** The local user, acting as this agent. */
  localAs(agent: string | undefined): Caller
}

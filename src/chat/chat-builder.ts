import { randomUUID } from 'node:crypto'
import type { Caller, Peer } from '../core/call.ts'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest } from '../core/chat.ts'
import { Json } from '../core/json.ts'

/** An answer, whole, and what was done for it. */
export interface ChatAnswer extends Omit<ChatEnd, 'kind'> {
  readonly text: string
  /** The tools that ran, in the order in which they began. */
  readonly calls: readonly AnswerCall[]
}

export interface AnswerCall {
  readonly name: string
  readonly server: string
  readonly arguments: unknown
  readonly isError: boolean
  readonly durationMs: number
  /** The beginning of what the model was told. */
  readonly text: string
}

export interface AskOptions {
  readonly signal?: AbortSignal
}

/** What is asked: a text, or a whole conversation. */
export type ChatInput = string | readonly ChatMessage[]

/** A way of asking. Each `with…` gives another one and leaves this one as it is. */
export interface ChatBuilder {
  /** By its name in the configuration. */
  withModel(name: string): ChatBuilder
  withMode(mode: 'staged' | 'agent'): ChatBuilder
  /** Only tools that one of these patterns fits: `server.tool`, with `*` where it helps. */
  withTools(...patterns: readonly string[]): ChatBuilder
  /** Something for the model to know before anything else. */
  withSystem(text: string): ChatBuilder
  /** Most rounds of the agent loop. */
  withMaxSteps(most: number): ChatBuilder
  /** Lets the model run code in the sandbox (S7). */
  withCodeExecution(options?: { readonly environment?: string; readonly timeoutMs?: number }): ChatBuilder
  /** Asks this function where a tool needs a person's yes; without it, such tools are refused. */
  withApproval(approve: (question: string) => boolean | Promise<boolean>): ChatBuilder
  /** Acts as an agent of the configuration. */
  asAgent(name: string): ChatBuilder
  /** Waits for the whole answer. */
  ask(asked: ChatInput, options?: AskOptions): Promise<ChatAnswer>
  /** The answer as it comes. Whoever stops reading stops it. */
  stream(asked: ChatInput, options?: AskOptions): AsyncIterable<ChatEvent>
}

export interface ChatBuilderOptions {
  readonly chat: Chat
  /** Who asks, as the agent of that name. */
  callerAs(agent: string | undefined): Caller
}

/** What has been chosen so far. */
interface Choices extends Pick<ChatRequest, 'model' | 'mode' | 'only' | 'maxSteps' | 'codeExecution'> {
  readonly system?: string
  readonly agent?: string
  readonly approve?: (question: string) => boolean | Promise<boolean>
}

/** Begins a way of asking a chat. */
function chatBuilder(options: ChatBuilderOptions, choices: Choices = {}): ChatBuilder {
  const next = (more: Choices) => chatBuilder(options, { ...choices, ...more })
  const { system, agent, approve, ...own } = choices

  const events = (asked: ChatInput, stream: boolean, { signal = new AbortController().signal }: AskOptions) => {
    const said: readonly ChatMessage[] = typeof asked === 'string' ? [{ role: 'user', content: asked }] : asked
    const messages: readonly ChatMessage[] =
      system === undefined ? said : [{ role: 'system', content: system }, ...said]
    const caller = options.callerAs(agent)
    return options.chat.answer({
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
    withSystem: (text) => next({ system: text }),
    withMaxSteps: (maxSteps) => next({ maxSteps }),
    withCodeExecution: (codeExecution = {}) => next({ codeExecution }),
    withApproval: (asked) => next({ approve: asked }),
    asAgent: (name) => next({ agent: name }),
    ask: (asked, more = {}) => wholeAnswer(events(asked, false, more)),
    stream: (asked, more = {}) => events(asked, true, more),
  }
}

/** Puts an answer together from what is told of it. */
async function wholeAnswer(events: AsyncIterable<ChatEvent>): Promise<ChatAnswer> {
  const texts: string[] = []
  const calls = new Map<string, AnswerCall>()
  let end: Omit<ChatEnd, 'kind'> | undefined
  for await (const event of events) {
    if (event.kind === 'text') texts.push(event.text)
    else if (event.kind === 'call') {
      const { name, server, arguments: args } = event
      calls.set(event.call, { name, server, arguments: args, isError: false, durationMs: 0, text: '' })
    } else if (event.kind === 'result') {
      const { isError, durationMs, text } = event
      const begun = calls.get(event.call)
      if (begun) calls.set(event.call, { ...begun, isError, durationMs, text })
    } else if (event.kind === 'end') {
      const { kind: _, ...rest } = event
      end = rest
    }
  }
  if (!end) throw new TypeError('the answer has no end')
  return { ...end, text: texts.join(''), calls: [...calls.values()] }
}

/** A function in the place of a client that a person sits at. */
function peerOf(approve: Choices['approve']): Peer {
  return {
    rounds: false,
    logLevel: undefined,
    notify() {},
    async ask(method, params) {
      const { message, requestedSchema } = params.value as {
        message?: string
        requestedSchema?: { properties?: object }
      }
      // Only a yes can be had here: whatever else a server wants to know, nobody is there to say it.
      const isForYes = method === 'elicitation/create' && 'approve' in (requestedSchema?.properties ?? {})
      const isAllowed = isForYes && approve !== undefined && (await approve(message ?? ''))
      return Json.of(isAllowed ? { action: 'accept', content: { approve: true } } : { action: 'decline' })
    },
  }
}

/** What a chat needs of a gateway. */
interface ChatGateway {
  /** None where no model is configured is a chat that says so when it is asked. */
  readonly chat: Chat
  /** The user of this machine, as an agent of their choice. */
  localAs(agent: string | undefined): Caller
}

/**
 * Asks models that use the tools of a gateway.
 *
 * @example
 * ```ts
 * await using gateway = await createGateway(await loadConfig({ env: process.env, cwd: process.cwd() }), { log })
 * const { text } = await createChat(gateway).withCodeExecution().ask('What is the 50th prime?')
 * ```
 */
export const createChat = (gateway: ChatGateway): ChatBuilder =>
  // The configuration may change while the gateway runs, and its chat with it.
  chatBuilder({
    chat: { models: () => gateway.chat.models(), answer: (request) => gateway.chat.answer(request) },
    callerAs: (agent) => gateway.localAs(agent),
  })

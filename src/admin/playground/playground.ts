import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Access, Served } from '../../core/access.ts'
import { type Caller, type Input, type Peer, quietPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments, type RpcErrorObject, ServerError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { progressValues } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { actingAs } from '../../serve/auth/identity.ts'
import { SseStream } from '../../serve/http/sse-stream.ts'
import { askable, nonInteractive, perform, shortCallId } from '../calls/calls.ts'
import { toolsQuery } from '../calls/schema.ts'
import type { AdminContext } from '../context.ts'
import type {
  CompletionInput,
  CompletionView,
  PlaygroundAnswer,
  PlaygroundBody,
  PlaygroundEvent,
  PromptPage,
  PromptView,
  ResourcePage,
  ResourceView,
  ToolsQuery,
} from '../contract.ts'
import { bodyArguments, failureEvent, jsonBytes, type Route, responseSent, userRoute } from '../router.ts'
import { selectTools } from '../tools/visibility.ts'
import * as schema from './schema.ts'

export interface PlaygroundInput extends Omit<PlaygroundBody, 'arguments'> {
  /** The arguments with their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
}

export interface PlaygroundStream {
  readonly signal: AbortSignal
  send(event: PlaygroundEvent): void
}

export type PlaygroundService = ReturnType<typeof createPlayground>

const answerable: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage'])

const pubSubTopic = 'playground'

/** An answer on its way to the process in which the request waits. */
interface SentAnswer {
  readonly ask: string
  readonly principal: string
  readonly answer: PlaygroundAnswer
}

/**
 * Requests from servers that wait for a person at the dashboard, in the process that runs the call. The answer may reach
 * another worker or replica, which passes it on, sealed, to all of them.
 */
export class PlaygroundQuestions implements Disposable {
  readonly #context: Pick<AdminContext, 'budgets' | 'pubSub' | 'seal'>
  readonly #waiting = new Map<string, { readonly principal: string; settle(answer: PlaygroundAnswer): void }>()
  readonly #subscription: Disposable | undefined

  constructor(context: Pick<AdminContext, 'budgets' | 'pubSub' | 'seal'>) {
    this.#context = context
    this.#subscription = context.pubSub?.subscribe(pubSubTopic, (text) => {
      const opened = context.seal.open(text, pubSubTopic)
      if (opened === undefined) return
      const { ask, principal, answer } = jsonValue(opened) as SentAnswer
      const found = this.#waiting.get(ask)
      if (found?.principal === principal) found.settle(answer)
    })
  }

  [Symbol.dispose](): void {
    this.#subscription?.[Symbol.dispose]()
  }

  async ask(
    principal: string,
    { send }: PlaygroundStream,
    ...[method, params, signal, from = 'server']: Parameters<Peer['ask']>
  ): Promise<Json> {
    if (!answerable.has(method)) throw invalidArguments(`The dashboard cannot answer ${method}.`)
    signal.throwIfAborted()
    const { questions } = this.#context.budgets
    questions.claim(principal)
    const id = randomUUID()
    const { promise, resolve, reject } = Promise.withResolvers<PlaygroundAnswer>()
    const withdraw = () => {
      send({ kind: 'withdrawn', id })
      reject(signal.reason)
    }
    signal.addEventListener('abort', withdraw, { once: true })
    this.#waiting.set(id, { principal, settle: resolve })
    send({ kind: 'ask', id, method, params: params.value, from })
    try {
      const { result, error } = await promise
      if (result !== undefined) return Json.of(result)
      throw new ServerError(Json.of<RpcErrorObject>({ code: -1, message: error ?? requestRefused }))
    } finally {
      this.#waiting.delete(id)
      questions.give(principal)
      signal.removeEventListener('abort', withdraw)
    }
  }

  answer(principal: string, ask: string, answer: PlaygroundAnswer): void {
    const { pubSub, seal } = this.#context
    const found = this.#waiting.get(ask)
    if (found?.principal === principal) found.settle(answer)
    else if (found === undefined && pubSub) {
      const sent: SentAnswer = { ask, principal, answer }
      pubSub.publish(pubSubTopic, seal.close(JSON.stringify(sent), pubSubTopic))
    } else throw invalidArguments('This request was already answered, or its call has ended.')
  }
}

/** Runs operations for the dashboard's playground: trying out what the gateway serves. */
export function createPlayground({ access, current }: AdminContext, questions: PlaygroundQuestions) {
  /** Admins see everything that the catalog has; others see what their agent may use. */
  const listServed = (caller: Caller, kind: 'resource' | 'template' | 'prompt'): readonly Served[] => {
    const { catalog } = current()
    return caller.admin ? catalog.everything(kind) : catalog.view(caller).list(kind)
  }

  return {
    /** Runs an operation and reports what happens. The last event is `end`; rejects before the first one, or if it fails. */
    async playground(caller: Caller, given: PlaygroundInput, stream: PlaygroundStream): Promise<void> {
      const who = { ...actingAs(access, caller, given.agent), capabilities: askable }
      const { served, input } = await resolveOperation(access.view(who), given)
      const id = shortCallId()
      stream.send({ kind: 'start', call: id })
      const peer = quietPeer(
        (...request) => questions.ask(caller.principal, stream, ...request),
        (params) => stream.send({ kind: 'progress', ...progressValues(params) }),
      )
      const { entry } = served
      const outcome = await perform(access, { caller: who, entry, input, signal: stream.signal, peer }, id)
      stream.send({ kind: 'end', outcome })
    },
    /** Answers a request that a playground call of the same principal waits for. */
    playgroundAnswer({ principal }: Caller, ask: string, answer: PlaygroundAnswer): void {
      if ((answer.result === undefined) === (answer.error === undefined)) {
        throw invalidArguments('An answer has either a `result` or an `error`.')
      }
      questions.answer(principal, ask, answer)
    },
    async completions(
      caller: Caller,
      { kind, name, argument, context: filled, agent }: CompletionInput,
      signal: AbortSignal,
    ): Promise<CompletionView> {
      const who = actingAs(access, caller, agent)
      const served = await access.view(who).resolve(kind, name, { operation: 'complete' })
      const args = filled === undefined ? { argument } : { argument, context: { arguments: filled } }
      const input = { arguments: Json.of<Record<string, unknown>>(args), uri: served.uri, meta: {} }
      const call = { id: shortCallId(), caller: who, entry: served.entry, input, signal, peer: nonInteractive }
      const { body } = await access.complete(call)
      const { values, hasMore } = (body.value.completion ?? {}) as { values?: unknown; hasMore?: unknown }
      const texts = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : []
      return { values: texts.slice(0, maxCompletions), hasMore: hasMore === true || texts.length > maxCompletions }
    },
    resources(caller: Caller, query: ToolsQuery): ResourcePage {
      const all = [...listServed(caller, 'resource'), ...listServed(caller, 'template')]
      const { tools, ...page } = selectTools(all, query)
      return { resources: tools.map(viewResource), ...page }
    },
    prompts(caller: Caller, query: ToolsQuery): PromptPage {
      const { tools, ...page } = selectTools(listServed(caller, 'prompt'), query)
      return { prompts: tools.map(viewPrompt), ...page }
    },
  }
}

async function resolveOperation(
  view: ReturnType<Access['view']>,
  { operation, name, arguments: args }: PlaygroundInput,
): Promise<{ served: Served; input: Input }> {
  const meta = { progressToken: 'playground' }
  if (operation === 'read_resource') {
    const served = await view.resolve('resource', name)
    return { served, input: { arguments: Json.of({}), uri: served.uri ?? name, meta } }
  }
  const kind = operation === 'get_prompt' ? 'prompt' : 'tool'
  return { served: await view.resolve(kind, name), input: { arguments: args, meta } }
}

const requestRefused = 'The person at the dashboard refused the request.'
/** MCP allows no more values in one response. */
const maxCompletions = 100

const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

const viewResource = ({ name, entry, definition }: Served): ResourceView => ({
  uri: name,
  template: entry.kind === 'template',
  server: entry.server,
  name: textOrEmpty(definition.title) || textOrEmpty(definition.name),
  description: textOrEmpty(definition.description),
  mimeType: textOrEmpty(definition.mimeType) || null,
})

function viewPrompt({ name, entry, definition }: Served): PromptView {
  const declared = Array.isArray(definition.arguments) ? (definition.arguments as readonly unknown[]) : []
  return {
    name,
    server: entry.server,
    title: textOrEmpty(definition.title) || null,
    description: textOrEmpty(definition.description),
    arguments: declared
      .map((one) => (one ?? {}) as { name?: unknown; description?: unknown; required?: unknown })
      .filter((one) => typeof one.name === 'string')
      .map((one) => ({
        name: one.name as string,
        description: textOrEmpty(one.description),
        required: one.required === true,
      })),
  }
}

/** What streams of the playground need from the endpoint. */
export interface PlaygroundStreams {
  readonly budgets: Pick<Budgets, 'streams'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Streams the events of a call. Closing the stream cancels the call. Rejects if the call cannot start; later failures are
 * events, because the response has begun.
 */
async function streamOperation(
  response: ServerResponse,
  { budgets, clock, log }: PlaygroundStreams,
  principal: string,
  work: (send: PlaygroundStream['send']) => Promise<void>,
): Promise<void> {
  budgets.streams.claim(principal)
  response.once('close', () => budgets.streams.give(principal))
  let stream: SseStream | undefined
  const send = (event: PlaygroundEvent) => {
    if (response.destroyed) return
    stream ??= new SseStream(response, clock)
    stream.send(jsonBytes(event))
  }
  try {
    await work(send)
  } catch (thrown) {
    if (!stream) throw thrown
    send(failureEvent(thrown, log))
  }
  stream?.end()
}

export const playgroundRoutes = (admin: PlaygroundService, streams: PlaygroundStreams): readonly Route[] => [
  userRoute('POST', 'playground', 'Calls a tool, reads a resource or gets a prompt; streams events', {
    stream: true,
    body: schema.playgroundInput,
    async run({ user, caller, body, bytes, signal, response }, { watch }) {
      watch(user, response)
      const given = { ...body, arguments: bodyArguments(bytes) }
      await streamOperation(response, streams, caller.principal, (send) =>
        admin.playground(caller, given, { signal, send }),
      )
      return responseSent
    },
  }),
  userRoute('POST', 'playground/{ask}/answer', "Answers a server's request that a playground stream reported", {
    body: schema.playgroundAnswer,
    run: ({ caller, target, body }) => admin.playgroundAnswer(caller, target, body),
  }),
  userRoute('POST', 'completions', 'Suggests values for an argument of a prompt or a resource template', {
    body: schema.completionInput,
    answer: schema.completionView,
    run: ({ caller, body, signal }) => admin.completions(caller, body, signal),
  }),
  userRoute('GET', 'resources', 'The resources and resource templates', {
    query: toolsQuery,
    answer: schema.resourcePage,
    run: ({ caller, query }) => admin.resources(caller, query),
  }),
  userRoute('GET', 'prompts', 'The prompts', {
    query: toolsQuery,
    answer: schema.promptPage,
    run: ({ caller, query }) => admin.prompts(caller, query),
  }),
]

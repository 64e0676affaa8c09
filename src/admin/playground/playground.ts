import { randomUUID } from 'node:crypto'
import type { Served } from '../../core/access.ts'
import { type Caller, type Input, type Peer, quietPeer } from '../../core/call.ts'
import { invalidArguments, type RpcErrorObject, ServerError, ToolwayError } from '../../core/errors.ts'
import { progressValues } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { askable, callId, nonInteractive, perform } from '../calls/perform.ts'
import type { AdminContext } from '../context.ts'
import type { PlaygroundAnswer, PromptView, ResourceView } from '../contract.ts'
import { resolveAgent } from '../policy/agents.ts'
import type { PlaygroundAdmin, PlaygroundInput, PlaygroundStream } from '../service.ts'
import { selectTools } from '../tools/visibility.ts'

interface Waiting {
  readonly principal: string
  settle(answer: PlaygroundAnswer): void
}

const answerable: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage'])

const topic = 'playground'

/**
 * Runs operations for the dashboard's playground. A request from a server waits in the process that runs the call. The
 * answer may reach another worker or replica, which passes it on, sealed, to all of them.
 */
export function createPlayground(context: AdminContext): { readonly admin: PlaygroundAdmin } & Disposable {
  const { access, current, budgets, pubSub, seal } = context
  const waiting = new Map<string, Waiting>()
  const elsewhere = pubSub?.subscribe(topic, (text) => {
    const opened = seal.open(text, topic)
    if (opened === undefined) return
    const { ask, principal, answer } = jsonValue(opened) as {
      ask: string
      principal: string
      answer: PlaygroundAnswer
    }
    const found = waiting.get(ask)
    if (found?.principal === principal) found.settle(answer)
  })

  const acting = (caller: Caller, agent: string | undefined): Caller => ({
    ...caller,
    agent: resolveAgent(access, caller, agent),
  })

  /** Sends a request to the dashboard and waits for its answer. */
  const ask = (
    principal: string,
    { send }: PlaygroundStream,
    ...[method, params, signal, from = 'server']: Parameters<Peer['ask']>
  ) => {
    if (!answerable.has(method)) {
      return Promise.reject(invalidArguments(`The dashboard cannot answer ${method}.`))
    }
    signal.throwIfAborted()
    budgets.questions.claim(principal)
    const id = randomUUID()
    return new Promise<Json>((resolve, reject) => {
      const over = () => {
        if (waiting.delete(id)) budgets.questions.give(principal)
        signal.removeEventListener('abort', withdraw)
      }
      const withdraw = () => {
        over()
        send({ kind: 'withdrawn', id })
        reject(signal.reason)
      }
      signal.addEventListener('abort', withdraw, { once: true })
      waiting.set(id, {
        principal,
        settle({ result, error }) {
          over()
          if (result !== undefined) resolve(Json.of(result))
          else reject(new ServerError(Json.of<RpcErrorObject>({ code: -1, message: error ?? refused })))
        },
      })
      send({ kind: 'ask', id, method, params: params.value, from })
    })
  }

  const peerOf = (principal: string, stream: PlaygroundStream): Peer =>
    quietPeer(
      async (...asked) => ask(principal, stream, ...asked),
      (params) => stream.send({ kind: 'progress', ...progressValues(params) }),
    )

  const resolve = async (caller: Caller, given: PlaygroundInput): Promise<{ served: Served; input: Input }> => {
    const view = access.view(caller)
    const meta = { progressToken: 'playground' }
    if (given.operation === 'read_resource') {
      const served = await view.resolve('resource', given.name)
      return { served, input: { arguments: Json.of({}), uri: served.uri ?? given.name, meta } }
    }
    const kind = given.operation === 'get_prompt' ? 'prompt' : 'tool'
    return { served: await view.resolve(kind, given.name), input: { arguments: given.arguments, meta } }
  }

  /** Admins see everything that the catalog has; others see what their agent may use. */
  const listed = (caller: Caller, kind: 'resource' | 'template' | 'prompt'): readonly Served[] => {
    const { catalog } = current()
    return caller.admin ? catalog.everything(kind) : catalog.view(caller).list(kind)
  }

  const admin: PlaygroundAdmin = {
    async playground(caller, given, stream) {
      const who = { ...acting(caller, given.agent), capabilities: askable }
      const { served, input } = await resolve(who, given)
      const id = callId()
      stream.send({ kind: 'start', call: id })
      const peer = peerOf(caller.principal, stream)
      const { entry } = served
      const outcome = await perform(access, { id, caller: who, entry, input, signal: stream.signal, peer })
      stream.send({ kind: 'end', outcome })
    },
    playgroundAnswer(caller, ask, answer) {
      if ((answer.result === undefined) === (answer.error === undefined)) {
        throw invalidArguments('An answer has either a `result` or an `error`.')
      }
      const { principal } = caller
      const found = waiting.get(ask)
      if (found?.principal === principal) found.settle(answer)
      else if (found === undefined && pubSub)
        pubSub.publish(topic, seal.close(JSON.stringify({ ask, principal, answer }), topic))
      else throw new ToolwayError('INVALID_ARGUMENTS', 'This request was already answered, or its call has ended.')
    },
    async completions(caller, { kind, name, argument, context: filled, agent }, signal) {
      const who = acting(caller, agent)
      const served = await access.view(who).resolve(kind, name, { operation: 'complete' })
      const args = filled === undefined ? { argument } : { argument, context: { arguments: filled } }
      const input = { arguments: Json.of<Record<string, unknown>>(args), uri: served.uri, meta: {} }
      const call = { id: callId(), caller: who, entry: served.entry, input, signal, peer: nonInteractive }
      const { body } = await access.complete(call)
      const { values, hasMore } = (body.value.completion ?? {}) as { values?: unknown; hasMore?: unknown }
      const texts = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : []
      return { values: texts.slice(0, maxCompletions), hasMore: hasMore === true || texts.length > maxCompletions }
    },
    resources(caller, query) {
      const all = [...listed(caller, 'resource'), ...listed(caller, 'template')]
      const { tools, ...page } = selectTools(all, query)
      return { resources: tools.map(resourceOf), ...page }
    },
    prompts(caller, query) {
      const { tools, ...page } = selectTools(listed(caller, 'prompt'), query)
      return { prompts: tools.map(promptOf), ...page }
    },
  }
  return { admin, [Symbol.dispose]: () => elsewhere?.[Symbol.dispose]() }
}

const refused = 'The person at the dashboard refused the request.'
/** MCP allows no more values in one response. */
const maxCompletions = 100

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const resourceOf = ({ name, entry, definition }: Served): ResourceView => ({
  uri: name,
  template: entry.kind === 'template',
  server: entry.server,
  name: textOf(definition.title) || textOf(definition.name),
  description: textOf(definition.description),
  mimeType: textOf(definition.mimeType) || null,
})

function promptOf({ name, entry, definition }: Served): PromptView {
  const declared = Array.isArray(definition.arguments) ? (definition.arguments as readonly unknown[]) : []
  return {
    name,
    server: entry.server,
    title: textOf(definition.title) || null,
    description: textOf(definition.description),
    arguments: declared
      .map((one) => (one ?? {}) as { name?: unknown; description?: unknown; required?: unknown })
      .filter((one) => typeof one.name === 'string')
      .map((one) => ({
        name: one.name as string,
        description: textOf(one.description),
        required: one.required === true,
      })),
  }
}

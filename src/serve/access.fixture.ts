import type { Access, ListChangeListener, Offers, Served, View } from '../core/access.ts'
import { entryOf } from '../core/call.fixture.ts'
import { type Call, type Caller, type Handler, logLevels } from '../core/call.ts'
import type { Definition, Kind } from '../core/entry.ts'
import { type ErrorCode, type RpcErrorObject, ServerError, ToolwayError } from '../core/errors.ts'
import { type Result, resultOf, textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'

/** A small catalog in memory, whose tools do what a test tells them to. */
export interface TestAccess extends Access {
  /** Every call that arrived, oldest first. */
  readonly calls: readonly Call[]
  /** Lets every waiting `wait` call end. */
  release(): void
  /** Announces that lists have changed. */
  change(...kinds: Kind[]): void
  /** Announces a change that only this session sees. */
  changeFor(session: string, kind: Kind): void
  readonly listeners: number
  /** What is offered beside entries. */
  offered: Offers
  /** How long servers allow caching their lists. */
  readonly listTtls: Partial<Record<Kind, number>>
  /** The subscriptions: the resource, as its source spells it, and the caller. */
  readonly followed: readonly { readonly caller: Caller; readonly uri: string }[]
  /** Announces that a resource has changed. */
  update(uri: string): void
  /** Notifications to servers, and the callers whose session has ended. */
  readonly informed: readonly (readonly [caller: Caller, method: string])[]
  readonly gone: readonly Caller[]
  /** The rejected requests. */
  readonly turned: readonly Parameters<Access['rejected']>[0][]
}

/** The error object of the `server_error` tool, spelt as no serialiser of ours would. */
export const serverError = '{ "code":-32099, "message":"disk \\u0066ull","data":{"n":1e2} }'
/** The result of the `modern` tool, in the envelope of the stateless era. */
const modern = '{"resultType":"complete", "content":[{"type":"text","text":"m"}],"ttlMs":5}'
/** The result of the `verbatim` tool, spelt likewise. */
export const verbatim = '{"content":[{"type":"text","text":"\\u0068i"}],"unknown":{"n":1.0}}'

export function createTestAccess(): TestAccess {
  const calls: Call[] = []
  const released = new Set<() => void>()
  const listeners = new Set<ListChangeListener>()
  const listTtls: Partial<Record<Kind, number>> = {}
  const followed = new Set<{ readonly caller: Caller; readonly uri: string; readonly updated: () => void }>()
  const informed: [Caller, string][] = []
  const gone: Caller[] = []
  const turned: Parameters<Access['rejected']>[0][] = []

  const tools: Record<string, Handler> = {
    echo: async ({ input }) => resultOf({ content: [{ type: 'text', text: JSON.stringify(input.arguments.value) }] }),
    verbatim: async () => ({ body: Json.raw(Buffer.from(verbatim)), isError: false }),
    pretty: async () => ({ body: Json.raw(Buffer.from('{\n  "content": []\r\n}')), isError: false }),
    wait: ({ signal }) =>
      new Promise<Result>((resolve, reject) => {
        released.add(() => resolve(textResult('waited')))
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
    deaf: () => new Promise<Result>(() => {}),
    refuse: async ({ input }) => {
      const { code } = input.arguments.value as { code: ErrorCode }
      throw new ToolwayError(code, `refused with ${code}`, { server: 'files', rule: 'r[0]', retryAfterMs: 7 })
    },
    server_error: async () => {
      throw new ServerError(Json.raw<RpcErrorObject>(Buffer.from(serverError)))
    },
    broken: async () => {
      throw new TypeError('secret detail')
    },
    progress: async ({ peer, input }) => {
      const { steps = 3, size = 0 } = input.arguments.value as { steps?: number; size?: number }
      for (let progress = 1; progress <= steps; progress++) {
        peer.notify(
          'notifications/progress',
          Json.of({ progressToken: 'upstream', progress, message: 'x'.repeat(size) }),
        )
      }
      return textResult('done')
    },
    log: async ({ peer }) => {
      peer.notify('notifications/message', Json.raw(Buffer.from('{"level":"info",\n"data":"hi"}')))
      return textResult('done')
    },
    log_all: async ({ peer }) => {
      for (const level of [...logLevels, 'unheard-of'])
        peer.notify('notifications/message', Json.of({ level, data: level }))
      return textResult(String(peer.logLevel))
    },
    modern: async () => ({ body: Json.raw(Buffer.from(modern)), isError: false }),
    start: ({ peer, signal, input }) => {
      const { endings = 1, size = 0 } = input.arguments.value as { endings?: number; size?: number }
      peer.notify('notifications/message', Json.of({ level: 'info', data: 'begun' }))
      return new Promise<Result>((resolve, reject) => {
        released.add(() => {
          for (let count = 0; count < endings; count++) {
            peer.notify('notifications/message', Json.of({ level: 'info', data: `ending${'!'.repeat(size)}` }))
          }
          resolve(textResult('finished'))
        })
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    },
    ask: async ({ peer, signal, input }) => {
      const { method = 'sampling/createMessage' } = input.arguments.value as { method?: string }
      const params = { messages: [{ role: 'user', content: { type: 'text', text: '?' } }], maxTokens: 9 }
      return textResult(JSON.stringify((await peer.ask(method, Json.of(params), signal)).value))
    },
    ask_and_leave: async ({ peer, signal }) => {
      peer.ask('roots/list', Json.of({}), signal).catch(() => {})
      return textResult('left')
    },
    large: async ({ input }) => textResult('x'.repeat((input.arguments.value as { size: number }).size)),
  }
  const complete: Handler = async ({ input }) =>
    resultOf({ completion: { values: [JSON.stringify(input.arguments.value)], total: 1, hasMore: false } })

  const entries: Served[] = [
    ...Object.entries(tools).map(([name, run]) => served('tool', name, { inputSchema: { type: 'object' } }, run)),
    served('resource', 'test://static', { uri: 'test://static' }, contents),
    served('template', 'test://{id}', { uriTemplate: 'test://{id}' }, contents),
    served('resource', 'test://refused', { uri: 'test://refused' }, refused),
    served('prompt', 'refused', {}, refused),
    served('prompt', 'greet', {}, async ({ input }) =>
      resultOf({
        messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(input.arguments.value) } }],
      }),
    ),
  ]

  const view: View = {
    ready: async () => {},
    started: async () => {},
    exposure: () => 'both',
    missing: () => [],
    listTtlMs: (kind) => listTtls[kind],
    list: (kind) => entries.filter(({ entry }) => entry.kind === kind),
    page(kind, cursor) {
      const all = entries.filter(({ entry }) => entry.kind === kind).map(({ definition }) => definition)
      if (kind !== 'tool') return { items: Buffer.from(JSON.stringify(all)), count: all.length }
      if (cursor !== undefined && cursor !== 'second') {
        throw new ToolwayError('INVALID_ARGUMENTS', 'The cursor is not one of ours: list again from the start.')
      }
      const items = cursor === 'second' ? all.slice(2) : all.slice(0, 2)
      const count = items.length
      return { items: Buffer.from(JSON.stringify(items)), count, ...(cursor === undefined && { nextCursor: 'second' }) }
    },
    known: () => undefined,
    async resolve(kind, spelling) {
      const found = entries.find(({ entry, name }) => entry.kind === kind && name === spelling)
      if (found !== undefined) return { ...found, ...(kind === 'resource' && { uri: spelling }) }
      const template =
        kind === 'resource' && spelling.startsWith('test://') && entries.find((e) => e.name === 'test://{id}')
      if (template) return { ...template, uri: spelling }
      throw new ToolwayError('TOOL_NOT_FOUND', `There is no ${kind} ${spelling}.`)
    },
    find: (kind, _server, name) => view.resolve(kind, name),
    shown: () => [],
    search: async () => ({ tools: [], total: 0 }),
    servers: () => [],
    refusal: () => undefined,
  }

  return {
    calls,
    async handle(call) {
      calls.push(call)
      call.admit?.()
      return call.entry.run(call)
    },
    complete(call) {
      calls.push(call)
      return complete(call)
    },
    relay: () => Promise.reject(new Error('nothing to relay')),
    answerChat: (_request, answer) => answer(),
    offered: { capabilities: {}, instructions: '' },
    listTtls,
    offers() {
      return this.offered
    },
    async subscribe(caller, { uri = '' }, updated) {
      if (uri === 'test://refused') throw new ToolwayError('DENIED_BY_POLICY', 'not for you')
      const following = { caller, uri, updated }
      followed.add(following)
      return { [Symbol.asyncDispose]: async () => void followed.delete(following) }
    },
    get followed() {
      return [...followed].map(({ caller, uri }) => ({ caller, uri }))
    },
    update(changed) {
      for (const { uri, updated } of followed) if (uri === changed) updated()
    },
    informed,
    gone,
    notifyServers: (caller, method) => void informed.push([caller, method]),
    sessionEnded: (caller) => void gone.push(caller),
    view: () => view,
    turned,
    rejected: (who) => void turned.push(who),
    agentOf: (_, asked) => asked ?? 'default',
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => listeners.delete(listener) }
    },
    release() {
      for (const resolve of released) resolve()
      released.clear()
    },
    change(...kinds) {
      for (const listener of listeners) listener(new Set(kinds))
    },
    changeFor(session, kind) {
      for (const listener of listeners) listener(new Set([kind]), session)
    },
    get listeners() {
      return listeners.size
    },
  }
}

function served(kind: Kind, name: string, more: Definition, run: Handler): Served {
  const definition = { name, description: `The ${kind} ${name}`, ...more }
  return { name, definition, entry: entryOf({ kind, name, definition, run }) }
}

const refused: Handler = async () => {
  throw new ToolwayError('DENIED_BY_POLICY', 'not for you', { server: 'files', rule: 'r[0]' })
}

const contents: Handler = async ({ input }) => resultOf({ contents: [{ uri: input.uri, text: 'text' }] })

import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import type { Access, MissingServer, Served, View } from '../core/access.ts'
import { type Call, type Caller, compose, type Interceptor, type Peer, runEntry } from '../core/call.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Result, ResultBody } from '../core/result.ts'
import type { Source } from '../core/source.ts'
import { Json } from '../json/json.ts'
import type { Tool } from './define-tool.ts'
import { type GatewayStatus, type MetaToolsOptions, metaTools } from './meta/index.ts'
import { toolSource } from './tool-source.ts'

export const user: Caller = {
  agent: 'default',
  agents: '*',
  principal: 'user',
  authenticated: true,
  admin: true,
  session: 'one',
  capabilities: {},
}

export const mutePeer: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new Error('nobody to ask')),
}

export const callOf = (entry: Entry, args: unknown, more: Partial<Call> = {}): Call => ({
  id: 'outer',
  caller: user,
  entry,
  input: { arguments: Json.of(args as Record<string, unknown>), meta: {} },
  signal: new AbortController().signal,
  peer: mutePeer,
  ...more,
})

/** Runs a tool alone, as its entry would. */
export async function runTool(tool: Tool, args: unknown, more: Partial<Call> = {}): Promise<Result> {
  const source = toolSource({ ...plain, name: 'native', tools: [tool], clock: createManualClock() })
  const entry = source.entries()[0] as Entry
  return entry.run(callOf(entry, args, more))
}

export const bodyOf = (result: Result): ResultBody => result.body.value

/** The structured content, which must also be there as JSON text. */
export function structuredOf<T = Record<string, unknown>>(result: Result): T {
  const { content, structuredContent } = bodyOf(result)
  const text = JSON.parse(String(content?.[0]?.text))
  if (JSON.stringify(text) !== JSON.stringify(structuredContent)) throw new Error('text and structured content differ')
  return structuredContent as T
}

/** The refusal that a call ended with, thrown or in a result. */
export const refusalOf = async (call: Promise<unknown>): Promise<ToolwayError> => {
  const thrown = await call.then(
    (result) => (result as Result | undefined)?.refusal,
    (error: unknown) => error,
  )
  if (thrown instanceof ToolwayError) return thrown
  throw new Error(`expected a refusal of our own, got ${String(thrown)}`)
}

const plain = { origin: 'forwarded', description: '', timeoutMs: 30_000 } as const

export interface TestGateway extends Access {
  readonly clock: ManualClock
  /** Every call that went through the pipeline, in order. */
  readonly calls: readonly Call[]
  /** Calls a meta-tool as a front end would. */
  ask(tool: string, args?: unknown, more?: Partial<Call>): Promise<Result>
}

export interface TestGatewayOptions {
  /** The tools of each server, or a whole source. */
  readonly servers: Readonly<Record<string, readonly Tool[] | ((source: Source) => Source)>>
  readonly descriptions?: Readonly<Record<string, string>>
  readonly interceptors?: readonly Interceptor[]
  readonly status?: GatewayStatus
  readonly meta?: Partial<MetaToolsOptions>
  /** Runs when a caller waits for servers that have not been ready yet. */
  ready?(): Promise<void>
  conversationStarted?(): void
  /** Runs when a caller waits for one server. */
  started?(server: string): Promise<void>
  readonly missing?: readonly MissingServer[]
  /** Why a caller may use no tool of a server. */
  refusal?(server: string): ToolwayError | undefined
}

/** A minimal gateway: real sources, real entries, the meta-tools over them, and a view that hides nothing. */
export function createTestGateway(options: TestGatewayOptions): TestGateway {
  const clock = createManualClock()
  const calls: Call[] = []
  const sources = Object.entries(options.servers).map(([name, offered]) => {
    const source = toolSource({
      ...plain,
      name,
      description: options.descriptions?.[name] ?? '',
      tools: typeof offered === 'function' ? [] : offered,
      clock,
    })
    return typeof offered === 'function' ? offered(source) : source
  })
  const summaries = () =>
    sources.map((source) => ({ name: source.name, status: source.status(), tools: source.entries().length }))
  const all: Source[] = [...sources]
  const served = (): Served[] =>
    all.flatMap((source) =>
      source.entries().map((entry) => {
        const name = `${entry.server}__${entry.name}`
        return { name, entry, definition: { ...entry.definition, name } }
      }),
    )
  const find = async (server: string, name: string) => {
    if (!all.some((source) => source.name === server)) throw new ToolwayError('SERVER_NOT_FOUND', `no server ${server}`)
    const named = ({ entry }: Served) => entry.name === name || entry.aliases?.includes(name)
    const found = served().find((tool) => tool.entry.server === server && named(tool))
    if (!found) throw new ToolwayError('TOOL_NOT_FOUND', `no tool ${name} on ${server}`, { server })
    return found
  }
  const view: View = {
    ready: options.ready ?? (async () => {}),
    conversationStarted: () => options.conversationStarted?.(),
    started: options.started ?? (async () => {}),
    exposure: () => 'both',
    missing: () => options.missing ?? [],
    listTtlMs: () => undefined,
    list: (kind) => (kind === 'tool' ? served() : []),
    shown: (exposure = 'both') =>
      served().filter(
        ({ entry: { server } }) => exposure === 'both' || (server === 'toolway') === (exposure === 'meta'),
      ),
    page: () => ({ items: Buffer.from('[]'), count: 0 }),
    known: () => undefined,
    resolve: async (_kind, spelling) => find(...(spelling.split('.', 2) as [string, string])),
    find: (_kind, server, name) => find(server, name),
    async search(query, { limit, server }) {
      const words = query.toLowerCase().split(' ')
      const score = ({ entry }: Served) =>
        words.filter((word) => `${entry.name} ${entry.definition.description}`.toLowerCase().includes(word)).length
      const offered = (tool: Served) =>
        server === undefined ? tool.entry.server !== 'toolway' : tool.entry.server === server
      const found = served().filter((tool) => offered(tool) && score(tool) > 0)
      return { tools: found.sort((a, b) => score(b) - score(a)).slice(0, limit), total: found.length }
    },
    servers: summaries,
    refusal: options.refusal ?? (() => undefined),
  }
  const access: Access = {
    relay: () => Promise.reject(new Error('nothing to relay')),
    answerChat: (_request, answer) => answer(),
    offers: () => ({ capabilities: {}, instructions: '' }),
    subscribe: () => Promise.reject(new Error('nothing to follow')),
    notifyServers() {},
    sessionEnded() {},
    handle: compose(
      [
        (call, next) => {
          calls.push(call)
          return next(call)
        },
        ...(options.interceptors ?? []),
      ],
      runEntry,
    ),
    complete: () => Promise.reject(new ToolwayError('TOOL_NOT_FOUND', 'nothing to complete')),
    rejected() {},
    agentOf: (_, asked) => asked ?? 'default',
    view: () => view,
    onChange: () => ({ [Symbol.dispose]() {} }),
  }
  const tools = metaTools({
    access,
    clock,
    status: () => options.status ?? { refusedBy: 'defaults.debug' },
    asAgent: onlyItself,
    ...options.meta,
  })
  all.push(toolSource({ ...plain, name: 'toolway', origin: 'native', tools, clock }))
  return {
    ...access,
    clock,
    calls,
    ask: async (tool, args = {}, more) => access.handle(callOf((await find('toolway', tool)).entry, args, more)),
  }
}

function onlyItself({ caller }: Call, agentId: string | undefined): Caller {
  if (agentId === undefined || agentId === caller.agent) return caller
  throw new ToolwayError('INVALID_AGENT_ID', `you may not act as ${agentId}`)
}

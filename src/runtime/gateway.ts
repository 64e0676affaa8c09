import { isDeepStrictEqual } from 'node:util'
import { reloadableChat } from '../chat/reloadable-chat.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Config } from '../config/schema.ts'
import { refuseUnauthenticated } from '../config/warnings.ts'
import { FileWatch } from '../config/watch.ts'
import type { Access } from '../core/access.ts'
import type { Call, Caller } from '../core/call.ts'
import type { Chat } from '../core/chat.ts'
import { systemClock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import { createListeners } from '../lib/listen.ts'
import { didYouMean } from '../lib/similar-text.ts'
import type { Why } from '../policy/explanation.ts'
import { type Authenticate, identityAt } from '../serve/auth/identity.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/router.ts'
import { type HttpServer, openHttpServer } from '../serve/http/server.ts'
import { programAccess } from '../serve/program-access.ts'
import { serveStdio } from '../serve/stdio.ts'
import { keptAuditKey } from '../stores/secret-file.ts'
import { registeredTools } from '../tools/tool-source.ts'
import { notifyOfApprovals } from './approvals.ts'
import { ConfigAudit } from './audit-events.ts'
import { Cluster } from './cluster.ts'
import type { Gateway, GatewayOptions } from './gateway-api.ts'
import {
  buildGeneration,
  disposeGeneration,
  type Generation,
  type GenerationListeners,
  prepareConfig,
  startGeneration,
} from './generation.ts'
import {
  environmentOf,
  explainDecision,
  gatewayStatus,
  offersTo,
  type ToolInvocation,
  tokenAccountOfAll,
} from './generation-queries.ts'
import { Generations } from './generations.ts'
import { identity } from './package-paths.ts'
import { type GenerationContext, openProcessState, type ProcessState } from './process-state.ts'
import { Reload } from './reload.ts'
import { haveSameUrl, serversOf, updateServers, whyUnserved } from './upstream-servers.ts'

type ListListeners = ReturnType<typeof createListeners<[kinds: ReadonlySet<Kind>, session?: string]>>

/**
 * The composition root. `ProcessState` lives as long as the process; a `Generation` lives until its configuration is
 * replaced and its last call has finished. `Access` runs each call in the current generation. Everything that serves
 * clients refers to `Access` only, never to a generation. `openAdmin` opens the admin API, the dashboard and the inbox.
 */
export async function createGateway(
  first: LoadedConfig,
  options: GatewayOptions,
  openAdmin?: (parts: GatewayParts) => AdminPart,
): Promise<Gateway> {
  const { log, clock = systemClock, shared } = options
  let gateway: RunningGateway | undefined
  const generations = new Generations<Generation>({
    clock,
    dispose: (generation) =>
      disposeGeneration(generation).catch((cause: unknown) =>
        log.error({ err: cause }, 'could not close all servers and services of a configuration'),
      ),
  })
  await using open = new AsyncDisposableStack()
  const processState = open.use(
    await openProcessState(first.config, generations, {
      ...{ shared, clock, log },
      sessions: () => gateway?.sessions ?? 0,
      tokens: () => tokenAccountOfAll(generations.current),
    }),
  )
  const lists: ListListeners = createListeners()
  const access = createAccess(generations, processState, lists)
  const context = createContext(generations, processState, access, options)
  generations.replace(buildGeneration(await prepareConfig(first, context), context))
  open.use(generations)
  const auditKey = await keptAuditKey(first.config.stores.path)
  gateway = new RunningGateway({ first, options, processState, generations, lists, context, auditKey, open }, openAdmin)
  await gateway.start()
  return gateway.serveAs(open.move())
}

const handleIn = ({ pipeline }: Generation, call: Call) => pipeline.handle(call)
const completeIn = ({ pipeline }: Generation, call: Call) => pipeline.complete(call)

function createAccess(
  generations: Generations<Generation>,
  { metrics, rejections, cache, approvals }: ProcessState,
  lists: ListListeners,
): Access {
  const aliveServers = () => new Set(generations.alive.flatMap(serversOf))
  return {
    handle: (call) => generations.run(handleIn, call),
    complete: (call) => generations.run(completeIn, call),
    relay: (method, call) => generations.run(({ pipeline }) => pipeline.relay(method, call)),
    answerChat: (...params) => generations.run(({ pipeline }) => pipeline.answerChat(...params)),
    subscribe: (...params) => generations.run(({ pipeline }) => pipeline.subscribe(...params)),
    view: (caller) => generations.current.pipeline.view(caller),
    rejected(request) {
      metrics.rejected(request.code)
      rejections.count(request)
      generations.current.pipeline.rejected(request)
    },
    agentOf: (credential, agent) => generations.current.policy.agentOf(credential, agent),
    offers: (caller) => offersTo(caller, generations.current),
    notifyServers(caller, method) {
      cache.callersChanged()
      for (const server of aliveServers()) server.notifyServer(caller, method)
    },
    sessionEnded(caller) {
      approvals.sessionEnded(caller.session)
      for (const server of aliveServers()) server.sessionEnded(caller)
    },
    onChange: lists.on,
  }
}

const createContext = (
  generations: Generations<Generation>,
  processState: ProcessState,
  access: Access,
  { tools = [], print }: GatewayOptions,
): GenerationContext => ({
  ...processState,
  access,
  servedUris: (call) => generations.current.catalog.servedUris(call),
  generations,
  approvalNeed: ({ entry, caller, approval }) => generations.current.approvalRules.need(entry, caller.agent, approval),
  isRevoked: (principal) => generations.current.inboundAuth.isRevoked(principal),
  unserved: (server) => whyUnserved(server, generations.current),
  redact: (text) => generations.current.redactor.text(text),
  tools: registeredTools(tools),
  print,
  status: (caller) => gatewayStatus(generations.current, caller, processState.reloads.status()),
})

/** What a gateway is built on, before it starts its first configuration. */
interface Foundation {
  readonly first: LoadedConfig
  readonly options: GatewayOptions
  readonly processState: ProcessState
  readonly generations: Generations<Generation>
  readonly lists: ListListeners
  readonly context: GenerationContext
  readonly auditKey: string
  /** Closes what is opened later before what was opened earlier. */
  readonly open: AsyncDisposableStack
}

const everyKind: ReadonlySet<Kind> = new Set(['tool', 'resource', 'template', 'prompt', 'skill'])

/** Serves clients in the current generation, and replaces it when the configuration changes. */
class RunningGateway {
  readonly #base: Foundation
  readonly #audit: ConfigAudit
  readonly #reload: Reload
  readonly #cluster: Cluster
  readonly #admin: AdminPart | undefined
  readonly #listeners: GenerationListeners
  #files: FileWatch | undefined
  #http: HttpServer | undefined
  #isServing = false

  constructor(base: Foundation, openAdmin?: (parts: GatewayParts) => AdminPart) {
    this.#base = base
    const { first, options, processState, generations, context, lists, open } = base
    const { clock, log, cache, breakers, reloads: history } = processState
    const current = () => generations.current
    this.#audit = new ConfigAudit(processState.audit, base.auditKey, context.redact)
    this.#reload = new Reload({
      ...{ history, audit: this.#audit, clock, log },
      current: () => generations.current.loaded,
      load: () => this.#load(),
      apply: (loaded) => this.#apply(loaded),
    })
    open.use(breakers.onChange((server) => generations.current.servers.get(server)?.server.breakerChanged()))
    const cluster = open.use(
      new Cluster({
        ...{ ...processState, current },
        reload: () => this.#reload.now(),
        readKeys: () => generations.current.inboundAuth.keysChanged(),
      }),
    )
    this.#cluster = cluster
    this.#listeners = { current, cache, changed: lists.emit, serverAdded: (...added) => cluster.watch(...added), log }
    const { authenticate } = this
    const { access } = context
    const { config } = first
    const why: GatewayParts['why'] = (...asked) => this.why(...asked)
    this.#admin = open.use(openAdmin?.({ processState, config, options, access, authenticate, current, cluster, why }))
  }

  async start(): Promise<void> {
    const { options, generations, processState, open } = this.#base
    if (options.watch)
      this.#files = new FileWatch(watchedFiles(generations.current), processState.clock, () => void this.#reload.now())
    open.use(this.#files)
    await startGeneration(generations.current, undefined, this.#listeners)
  }

  get sessions(): number {
    return this.#http?.sessions ?? 0
  }

  readonly authenticate: Authenticate = (...params) =>
    this.#base.generations.current.inboundAuth.authenticate(...params)

  why(agent: string, tool: string, { authenticated = true } = {}): Promise<Why> {
    return explainDecision(this.#base.generations.current, { agent, tool, authenticated }, { ...local, agent })
  }

  localAs(agent: string | undefined): Caller {
    return { ...local, asked: agent, agent: this.#base.generations.current.policy.agentOf(local, agent) }
  }

  async #load(): Promise<LoadedConfig> {
    const { first, options, generations } = this.#base
    this.#files?.reading()
    try {
      return (await options.load?.()) ?? first
    } catch (thrown) {
      // Also watch files that the configuration refers to, such as secrets: a missing one may appear later.
      if (thrown instanceof ConfigError)
        this.#files?.follow([...watchedFiles(generations.current), ...thrown.filesToWatch])
      throw thrown
    }
  }

  /** Builds a generation from a configuration and makes it the current one, or throws and changes nothing. */
  async #apply(loaded: LoadedConfig): Promise<void> {
    refuseUnauthenticated(loaded)
    const { generations, processState, context, lists } = this.#base
    const { breakers, bulkhead, approvals, cache, redactName } = processState
    const before = generations.current
    await using unfinished = new AsyncDisposableStack()
    const prepared = await prepareConfig(loaded, context, before)
    unfinished.use(prepared.parts)
    unfinished.use(prepared.serverParts)
    const next = buildGeneration(prepared, context, before)
    await startGeneration(next, before, this.#listeners)
    generations.replace(next)
    updateServers(next)
    redactName.clear()
    unfinished.move()
    for (const [name, { server, builtFrom }] of before.servers) {
      const replacement = next.servers.get(name)
      if (replacement?.server === server) continue
      breakers.forget(name)
      if (!haveSameUrl(builtFrom.config, replacement?.builtFrom.config)) bulkhead.forget(name)
    }
    bulkhead.limitsChanged()
    // A person gave these approvals under the previous rules.
    approvals.forgetGrants()
    if (!isDeepStrictEqual(before.loaded.config.cache, loaded.config.cache)) cache.clear()
    lists.emit(everyKind)
    this.#files?.follow(watchedFiles(next))
    this.#startInbox()
  }

  #startInbox(): void {
    const { webhook } = this.#base.generations.current.loaded.config.inbox
    if (this.#http && webhook !== undefined) this.#admin?.startInbox()
  }

  /** Records start and stop in the audit log, but not for commands such as `toolway tools`, which serve no clients. */
  #startServing(running: AsyncDisposableStack): void {
    if (this.#isServing) return
    this.#isServing = true
    const { generations } = this.#base
    this.#audit.started(generations.current.loaded.config)
    running.defer(() => this.#audit.stopped(generations.current.loaded.config))
  }

  async #listen(running: AsyncDisposableStack, chat: Chat): Promise<HttpServer> {
    const { first, options, generations, processState, context } = this.#base
    const { approvals, history, membership, budgets, clock, log } = processState
    refuseUnauthenticated(generations.current.loaded)
    // Serialize the tool list now, so that the first request does not have to wait for it.
    generations.current.catalog.view(this.localAs(undefined)).page('tool')
    this.#startServing(running)
    history?.start()
    const admin = this.#admin
    const http = await openHttpServer({
      ...{ config: first.config.server, access: context.access, authenticate: this.authenticate, info: identity },
      ...{ membership, workers: options.shared, budgets, clock, log },
      current: {
        chat: () => (chat.models().length > 0 ? chat : undefined),
        environmentOf: (...called: ToolInvocation) => environmentOf(generations.current, ...called),
        jwt: () => generations.current.inboundAuth.config.jwt,
        failures: () => generations.current.inboundAuth.config,
        traced: () => generations.current.traces !== undefined,
        endpoints: () => generations.current.loaded.config.endpoints,
        published: () => generations.current.loaded.config,
      },
      ...(admin && { adminEndpoint: (server) => admin.endpoint(server) }),
    })
    this.#http = running.use(http)
    // Disposed of before the server, so that calls which wait for a person do not delay the shutdown.
    running.use(approvals.accept())
    running.use(
      notifyOfApprovals({
        webhook: () => generations.current.loaded.config.approvals.webhook,
        dashboard: new URL(http.url).origin,
        redact: context.redact,
        ...{ approvals, clock, log },
      }),
    )
    this.#startInbox()
    await Promise.all([membership?.join(http.address), options.shared?.join(http.address)])
    return http
  }

  /** The gateway for programs and commands. `running` is disposed of with it. */
  serveAs(running: AsyncDisposableStack): Gateway {
    const { first, generations, processState, context } = this.#base
    const { budgets, reloads, clock, log } = processState
    const { access } = context
    const chat = reloadableChat(
      () => generations.current.chat,
      (work) => generations.run((generation) => work(generation.chat)),
    )
    const localAs = (agent: string | undefined) => this.localAs(agent)
    let closed: Promise<void> | undefined
    return {
      ...access,
      ...programAccess({ access, localAs, isClosed: () => running.disposed, log }),
      chat,
      get loaded() {
        return generations.current.loaded
      },
      get local() {
        return localAs(undefined)
      },
      localAs,
      get token() {
        return generations.current.token
      },
      why: (...asked) => this.why(...asked),
      servers: () => generations.current.catalog.summaries(),
      async refresh() {
        await Promise.all(serversOf(generations.current).map((server) => server.refresh()))
      },
      generations: () => generations.alive.length,
      reloadStatus: () => reloads.status(),
      reload: async () => {
        await this.#cluster.reload()
        return reloads.status()
      },
      listen: () => this.#listen(running, chat),
      stdio: async (input, output, { agent, expose, endpoint } = {}) => {
        this.#startServing(running)
        const { maxValues } = first.config.server
        const { endpoints } = generations.current.loaded.config
        const caller = { ...atEndpoint(localAs, agent, endpoint, endpoints), exposure: expose }
        return serveStdio({ input, output, access, info: identity, caller, maxValues, budgets, clock, log })
      },
      // A second caller waits for the first one.
      [Symbol.asyncDispose]() {
        closed ??= running.disposeAsync()
        return closed
      },
    }
  }
}

const local: Omit<Caller, 'agent'> = {
  agents: '*',
  principal: 'local',
  authenticated: true,
  admin: true,
  session: 'local',
  capabilities: {},
}

/** Files that trigger a reload when they change. */
const watchedFiles = ({ loaded, plugins }: Generation): readonly string[] => [
  ...loaded.filesToWatch,
  ...plugins.filesToWatch,
]

/** What the admin part gets from a gateway. */
export interface GatewayParts {
  readonly processState: ProcessState
  /** The configuration that the process was started with: its address and its stores stay in use after a reload. */
  readonly config: Config
  readonly options: GatewayOptions
  readonly access: Access
  readonly authenticate: Authenticate
  current(): Generation
  /** Actions that apply to all processes that serve this gateway. */
  readonly cluster: Pick<Cluster, 'reload' | 'control' | 'keysChanged'>
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
}

/** The part of a gateway that operators use. It loads its code when that is needed for the first time. */
export interface AdminPart extends AsyncDisposable {
  endpoint(server: ListeningServer): Promise<HttpEndpoint>
  startInbox(): void
}

/** The local user at a named endpoint, where it acts as the endpoint's agent alone. */
function atEndpoint(
  localAs: Gateway['localAs'],
  agent: string | undefined,
  endpoint: string | undefined,
  endpoints: Config['endpoints'],
): Caller {
  if (endpoint === undefined) return localAs(agent)
  const configured = Object.hasOwn(endpoints, endpoint) ? endpoints[endpoint] : undefined
  if (!configured) {
    const hint = didYouMean(endpoint, Object.keys(endpoints), '')
    throw new ToolwayError('INVALID_ARGUMENTS', `There is no endpoint "${endpoint}" in endpoints${hint}.`)
  }
  const acting = configured.agent ?? agent
  if (agent !== undefined && agent !== acting) {
    const sentence = `Callers of the endpoint ${endpoint} act as ${acting} (endpoints.${endpoint}.agent), not as ${agent}.`
    throw new ToolwayError('INVALID_AGENT_ID', sentence)
  }
  const identity = identityAt(localAs(acting), { name: endpoint, agent: configured.agent })
  return { ...localAs(acting), agents: identity.agents, endpoint }
}

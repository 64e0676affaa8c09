import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { reloadableChat } from '../chat/reloadable-chat.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import { refuseUnauthenticated } from '../config/unauthenticated.ts'
import { watchFiles } from '../config/watch.ts'
import type { Access } from '../core/access.ts'
import type { Caller, Handler } from '../core/call.ts'
import type { Chat } from '../core/chat.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { Why } from '../policy/explanation.ts'
import type { OpenDoor } from '../serve/admin/endpoint.ts'
import type { Authenticate } from '../serve/auth/identity.ts'
import { type HttpDoor, openHttpDoor } from '../serve/http/server.ts'
import { type ProgramAccess, programAccess } from '../serve/program-access.ts'
import { serveStdio } from '../serve/stdio.ts'
import { keptAuditKey } from '../stores/secret-file.ts'
import type { Tool } from '../tools/define.ts'
import { registeredTools } from '../tools/registered.ts'
import { accountOfAll } from './admin/overview.ts'
import { createCluster } from './cluster.ts'
import { mayShowValue } from './config-difference.ts'
import type { GenerationContext } from './context.ts'
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
  mayInspect,
  offersTo,
  type ToolInvocation,
} from './generation-queries.ts'
import { packageFile, version } from './package-paths.ts'
import { openProcessState } from './process-state.ts'
import {
  createConfigAudit,
  createGenerations,
  createReload,
  createReloadHistory,
  type Generations,
  type ReloadStatus,
} from './reload.ts'
import { serversOf } from './upstream-servers.ts'
import type { SharedServices } from './workers/worker.ts'

export interface GatewayOptions {
  readonly log: Log
  readonly clock?: Clock
  /** Reads the configuration anew; without it the one given holds to the end. */
  readonly load?: () => Promise<LoadedConfig>
  /** Whether changes of the files are noticed; otherwise only `reload` takes them over. */
  readonly watch?: boolean
  /** What this process shares with others, where it is one of several workers on this machine. */
  readonly shared?: SharedServices | undefined
  /** Tools that run in this process, made by `defineTool`; served beside the native ones, as server `native`. */
  readonly tools?: readonly Tool[]
  /** Prints to standard output, where that is not the line to a client: there is a sink for it. */
  readonly print?: (text: string) => void
}

/** Toolway as one object: the way in for calls, and the doors that lead to it. */
export interface Gateway extends Access, ProgramAccess, AsyncDisposable {
  /** Answers with the models and the tools of the configuration in force. */
  readonly chat: Chat
  /** The configuration in force. */
  readonly loaded: LoadedConfig
  /** The user of this machine, who needs no credential. */
  readonly local: Caller
  /** The same as an agent of their choice. */
  localAs(agent: string | undefined): Caller
  /** What clients must send over HTTP; undefined when nothing is asked of them. */
  readonly token: string | undefined
  /**
   * Whether an agent may use a tool, and by which rule; the tool in any spelling. Names near misses of either. Where
   * the caller is not authenticated it may be refused the agent.
   */
  why(agent: string, tool: string, options?: { readonly authenticated?: boolean }): Promise<Why>
  /** Every server and how it is, whoever may use it: for the operator. */
  servers(): readonly ServerSummary[]
  /** Asks every server again what it offers; settles when each has answered or failed. */
  refresh(): Promise<void>
  /** How many configurations still have calls under way, the present one among them. */
  generations(): number
  /** How taking over changed configurations has gone. */
  reloadStatus(): ReloadStatus
  /**
   * Reads the configuration again and puts it into force, whole or not at all; other replicas are told to do so, too.
   * Never rejects.
   */
  reload(): Promise<ReloadStatus>
  /** Opens the HTTP door. */
  listen(): Promise<HttpDoor>
  /** Serves one client over a pair of streams, until its input ends. */
  stdio(input: Readable, output: Writable, agent?: string): Promise<void>
}

const everyKind: ReadonlySet<Kind> = new Set(['tool', 'resource', 'template', 'prompt'])

/** The composition root: with `generation.ts`, which builds all that belongs to one configuration, the only place that knows everybody. */
export async function createGateway(first: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { log, clock = systemClock, load = async () => first } = options
  const { config } = first
  const tools = registeredTools(options.tools ?? [])
  const startedAt = clock.now()
  await using open = new AsyncDisposableStack()
  let door: HttpDoor | undefined
  const processState = open.use(
    await openProcessState(config, () => generations.current, {
      ...{ clock, log, shared: options.shared },
      sessions: () => door?.sessions ?? 0,
      reloads: () => reload.status(),
      tokens: () => accountOfAll(generations.current),
    }),
  )
  const listeners = new Set<(kinds: ReadonlySet<Kind>) => void>()
  const tell = (kinds: ReadonlySet<Kind>) => {
    for (const listener of listeners) listener(kinds)
  }

  const access: Access = {
    handle: within(({ pipeline }) => pipeline.handle),
    complete: within(({ pipeline }) => pipeline.complete),
    relay: (method, call) => generations.run(({ pipeline }) => pipeline.relay(method, call)),
    subscribe: (...asked) => generations.run(({ pipeline }) => pipeline.subscribe(...asked)),
    view: (caller) => generations.current.pipeline.view(caller),
    rejected(who) {
      processState.metrics.rejected(who.code)
      generations.current.pipeline.rejected(who)
    },
    agentOf: (credential, asked) => generations.current.policy.agentOf(credential, asked),
    offers: (caller) => offersTo(caller, generations.current),
    notifyServers(caller, method) {
      processState.cache.callersChanged()
      for (const server of new Set(generations.alive.flatMap(serversOf))) server.notifyServer(caller, method)
    },
    sessionEnded(caller) {
      for (const server of new Set(generations.alive.flatMap(serversOf))) server.sessionEnded(caller)
    },
    onChange(listener) {
      // Wrapped, so that one function registered twice is two listeners.
      const own = (kinds: ReadonlySet<Kind>) => listener(kinds)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
  }
  const context: GenerationContext = {
    ...processState,
    access,
    servedUri: (server, uri) => generations.current.catalog.servedUri(server, uri),
    policy: () => generations.current.policy,
    redact: (text) => generations.current.redactor.text(text),
    tools,
    print: options.print,
    status: (caller) =>
      mayInspect(generations.current, caller) ? gatewayStatus(generations.current, reload.status()) : undefined,
  }
  const generations: Generations<Generation> = open.use(
    createGenerations<Generation>({
      first: buildGeneration(await prepareConfig(first, context), context),
      clock,
      end: (generation) => disposeGeneration(generation, generations.alive),
    }),
  )
  const { breakers, bulkhead, pubSub, cache } = processState
  const current = () => generations.current
  const history = createReloadHistory()
  const record = createConfigAudit(processState.audit, await keptAuditKey(config.stores.path), context.redact)
  let serving = false
  /** Only what serves clients starts and stops; a command that lists tools does neither. */
  const startServing = () => {
    if (serving) return
    serving = true
    record.started(generations.current.loaded.config)
    running.defer(() => record.stopped(generations.current.loaded.config))
  }
  const reload = createReload({
    history,
    record,
    mayShow: mayShowValue,
    current: () => current().loaded,
    load: () =>
      load().catch((thrown: unknown) => {
        // A secret that is not there yet comes by itself: nobody touches the configuration again for it.
        if (thrown instanceof ConfigError) files?.follow([...placesOf(generations.current), ...thrown.places])
        throw thrown
      }),
    async apply(loaded) {
      refuseUnauthenticated(loaded)
      const before = generations.current
      const chosen = await prepareConfig(loaded, context, before)
      const next = buildGeneration(chosen, context, before)
      await startGeneration(next, before, watching)
      generations.replace(next)
      for (const [name, { server }] of before.servers) {
        if (next.servers.get(name)?.server !== server) breakers.forget(name)
      }
      bulkhead.limitsChanged()
      if (!isDeepStrictEqual(before.loaded.config.cache, loaded.config.cache)) cache.clear()
      tell(everyKind)
      files?.follow(placesOf(next))
    },
    clock,
    log,
  })
  open.use(breakers.onChange((server) => current().servers.get(server)?.server.breakerChanged()))
  const cluster = open.use(createCluster({ pubSub, breakers, current, reload: reload.now, clock, log }))
  const watching: GenerationListeners = { current, cache, changed: tell, serverAdded: cluster.watch, log }
  const files = options.watch
    ? open.use(watchFiles(placesOf(generations.current), clock, () => void reload.now()))
    : undefined
  await startGeneration(generations.current, undefined, watching)

  const chat = reloadableChat(
    () => generations.current.chat,
    (work) => generations.run((generation) => work(generation.chat)),
  )
  const running = open.move()
  return {
    ...access,
    ...programAccess({ access, localAs }),
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
    why,
    servers: () => generations.current.catalog.summaries(),
    async refresh() {
      await Promise.all(serversOf(generations.current).map((server) => server.refresh()))
    },
    generations: () => generations.alive.length,
    reloadStatus: reload.status,
    async reload() {
      await cluster.reload()
      return reload.status()
    },
    async listen() {
      refuseUnauthenticated(generations.current.loaded)
      // What is remembered is made ready to be sent before anybody can ask for it.
      generations.current.catalog.view(localAs(undefined)).page('tool')
      const authenticate: Authenticate = (...given) => generations.current.inboundAuth.authenticate(...given)
      const { shared } = options
      const page = shared?.pages(processState.metrics.page) ?? processState.metrics.page
      const metrics = config.telemetry.metrics ? page : undefined
      const adminRoutes = async (open: OpenDoor) => {
        // Loaded when somebody comes to look: most of the time only programs do.
        const { createAdminRoutes } = await import('./admin/index.ts')
        const own = { access, authenticate, config: config.server, startedAt, version, folder: dashboard }
        const reloading = { ...reload, now: cluster.reload, history }
        const admin = { ...own, current, reload: reloading, why, metrics, worker: shared }
        return createAdminRoutes({ ...processState, ...admin, auditKey: () => keptAuditKey(config.stores.path) })(open)
      }
      startServing()
      door = running.use(
        await openHttpDoor({
          config: config.server,
          authenticate,
          access,
          info,
          ready: () => true,
          chat: () => (chat.models().length > 0 ? chat : undefined),
          membership: processState.membership,
          workers: shared,
          environmentOf: (...called: ToolInvocation) => environmentOf(current(), ...called),
          jwt: () => current().inboundAuth.config.jwt,
          failures: () => current().inboundAuth.config,
          people: adminRoutes,
          traced: () => current().traces !== undefined,
          clock,
          log,
        }),
      )
      await Promise.all([processState.membership?.join(door.address), shared?.join(door.address)])
      return door
    },
    stdio(input, output, agent) {
      startServing()
      const { maxValues } = config.server
      return serveStdio({ input, output, access, info, caller: localAs(agent), maxValues, clock, log })
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  function within(handlerOf: (generation: Generation) => Handler): Handler {
    return (call) => generations.run((generation) => handlerOf(generation)(call))
  }

  function why(agent: string, tool: string, { authenticated = true } = {}): Promise<Why> {
    return explainDecision(generations.current, { agent, tool, authenticated }, { ...local, agent })
  }

  function localAs(agent: string | undefined): Caller {
    const asked = agent === undefined ? {} : { asked: agent }
    return { ...local, ...asked, agent: generations.current.policy.agentOf(local, agent) }
  }
}

const info = { name: 'toolway', version }

/** Built by tooling/build-web.ts. */
const dashboard = fileURLToPath(packageFile('web/dist'))

const local: Omit<Caller, 'agent'> = {
  agents: '*',
  principal: 'local',
  authenticated: true,
  admin: true,
  session: 'local',
  capabilities: {},
}

/** The files that a change of makes another world. */
const placesOf = ({ loaded, plugins }: Generation): readonly string[] => [...loaded.places, ...plugins.value.places]

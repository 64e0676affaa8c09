import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { chatWithin } from '../chat/reloadable-chat.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import { refuseUnauthenticated } from '../config/unauthenticated.ts'
import { watchPlaces } from '../config/watch.ts'
import type { Access } from '../core/access.ts'
import type { Caller, Handler } from '../core/call.ts'
import type { Chat } from '../core/chat.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { ServerSummary } from '../core/source-status.ts'
import type { Why } from '../policy/explanation.ts'
import type { OpenDoor } from '../serve/admin/door.ts'
import type { Authenticate } from '../serve/authenticate/index.ts'
import { type HttpDoor, openHttpDoor } from '../serve/http.ts'
import { type ProgramAccess, programAccess } from '../serve/program.ts'
import { serveStdio } from '../serve/stdio.ts'
import { keptAuditKey } from '../stores/audit-key.ts'
import type { Tool } from '../tools/define.ts'
import { registeredTools } from '../tools/registered.ts'
import { accountOfAll } from './admin/overview.ts'
import { createFanOut } from './cluster.ts'
import { mayTell } from './config-difference.ts'
import type { Surroundings } from './context.ts'
import { beginWorld, buildWorld, endWorld, prepare, type Watching, type World } from './generation.ts'
import { explain, gatewayStatus, mayInspect, type NamedIn, namedEnvironment, offersTo } from './generation-queries.ts'
import { packageFile, version } from './package-paths.ts'
import { openLasting } from './process-state.ts'
import {
  createHistory,
  createReload,
  createWorlds,
  type ReloadStatus,
  recordConfiguration,
  type Worlds,
} from './reload.ts'
import { serversOf } from './upstream-servers.ts'
import type { Shared } from './workers/worker.ts'

export interface GatewayOptions {
  readonly log: Log
  readonly clock?: Clock
  /** Reads the configuration anew; without it the one given holds to the end. */
  readonly load?: () => Promise<LoadedConfig>
  /** Whether changes of the files are noticed; otherwise only `reload` takes them over. */
  readonly watch?: boolean
  /** What this process shares with others, where it is one of several workers on this machine. */
  readonly shared?: Shared | undefined
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
  worlds(): number
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

/** The composition root: with `world.ts`, which it builds one configuration with, the only place that knows everybody. */
export async function createGateway(first: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { log, clock = systemClock, load = async () => first } = options
  const { config } = first
  const tools = registeredTools(options.tools ?? [])
  const startedAt = clock.now()
  await using open = new AsyncDisposableStack()
  let door: HttpDoor | undefined
  const lasting = open.use(
    await openLasting(config, () => worlds.present, {
      ...{ clock, log, shared: options.shared },
      sessions: () => door?.sessions ?? 0,
      reloads: () => reload.status(),
      tokens: () => accountOfAll(worlds.present),
    }),
  )
  const listeners = new Set<(kinds: ReadonlySet<Kind>) => void>()
  const tell = (kinds: ReadonlySet<Kind>) => {
    for (const listener of listeners) listener(kinds)
  }

  const access: Access = {
    handle: within(({ pipeline }) => pipeline.handle),
    complete: within(({ pipeline }) => pipeline.complete),
    relay: (method, call) => worlds.within(({ pipeline }) => pipeline.relay(method, call)),
    subscribe: (...asked) => worlds.within(({ pipeline }) => pipeline.subscribe(...asked)),
    view: (caller) => worlds.present.pipeline.view(caller),
    rejected(who) {
      lasting.metrics.rejected(who.code)
      worlds.present.pipeline.rejected(who)
    },
    agentOf: (credential, asked) => worlds.present.policy.agentOf(credential, asked),
    offers: (caller) => offersTo(caller, worlds.present),
    notifyServers(caller, method) {
      lasting.cache.callersChanged()
      for (const server of new Set(worlds.living.flatMap(serversOf))) server.inform(caller, method)
    },
    sessionEnded(caller) {
      for (const server of new Set(worlds.living.flatMap(serversOf))) server.left(caller)
    },
    onChange(listener) {
      // Wrapped, so that one function registered twice is two listeners.
      const own = (kinds: ReadonlySet<Kind>) => listener(kinds)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
  }
  const surroundings: Surroundings = {
    ...lasting,
    access,
    servedUri: (server, uri) => worlds.present.catalog.servedUri(server, uri),
    policy: () => worlds.present.policy,
    redact: (text) => worlds.present.redactor.text(text),
    tools,
    print: options.print,
    status: (caller) =>
      mayInspect(worlds.present, caller) ? gatewayStatus(worlds.present, reload.status()) : undefined,
  }
  const worlds: Worlds<World> = open.use(
    createWorlds<World>({
      first: buildWorld(await prepare(first, surroundings), surroundings),
      clock,
      end: (world) => endWorld(world, worlds.living),
    }),
  )
  const { breakers, bulkhead, pubSub, cache } = lasting
  const present = () => worlds.present
  const history = createHistory()
  const record = recordConfiguration(lasting.audit, await keptAuditKey(config.stores.path), surroundings.redact)
  let serving = false
  /** Only what serves clients starts and stops; a command that lists tools does neither. */
  const startServing = () => {
    if (serving) return
    serving = true
    record.started(worlds.present.loaded.config)
    running.defer(() => record.stopped(worlds.present.loaded.config))
  }
  const reload = createReload({
    history,
    record,
    mayTell,
    current: () => worlds.present.loaded,
    load: () =>
      load().catch((thrown: unknown) => {
        // A secret that is not there yet comes by itself: nobody touches the configuration again for it.
        if (thrown instanceof ConfigError) files?.follow([...placesOf(worlds.present), ...thrown.places])
        throw thrown
      }),
    async apply(loaded) {
      refuseUnauthenticated(loaded)
      const before = worlds.present
      const chosen = await prepare(loaded, surroundings, before)
      const next = buildWorld(chosen, surroundings, before)
      await beginWorld(next, before, watching)
      worlds.follow(next)
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
  open.use(breakers.onChange((server) => present().servers.get(server)?.server.breakerChanged()))
  const fanOut = open.use(createFanOut({ pubSub, breakers, present, reload: reload.now, clock, log }))
  const watching: Watching = { present, cache, changed: tell, added: fanOut.watch, log }
  const files = options.watch
    ? open.use(watchPlaces(placesOf(worlds.present), clock, () => void reload.now()))
    : undefined
  await beginWorld(worlds.present, undefined, watching)

  const chat = chatWithin(
    () => worlds.present.chat,
    (work) => worlds.within((world) => work(world.chat)),
  )
  const running = open.move()
  return {
    ...access,
    ...programAccess({ access, localAs }),
    chat,
    get loaded() {
      return worlds.present.loaded
    },
    get local() {
      return localAs(undefined)
    },
    localAs,
    get token() {
      return worlds.present.token
    },
    why,
    servers: () => worlds.present.catalog.summaries(),
    async refresh() {
      await Promise.all(serversOf(worlds.present).map((server) => server.refresh()))
    },
    worlds: () => worlds.living.length,
    reloadStatus: reload.status,
    async reload() {
      await fanOut.reload()
      return reload.status()
    },
    async listen() {
      refuseUnauthenticated(worlds.present.loaded)
      // What is remembered is made ready to be sent before anybody can ask for it.
      worlds.present.catalog.view(localAs(undefined)).page('tool')
      const authenticate: Authenticate = (...given) => worlds.present.entrance.authenticate(...given)
      const { shared } = options
      const page = shared?.pages(lasting.metrics.page) ?? lasting.metrics.page
      const metrics = config.telemetry.metrics ? page : undefined
      const people = async (open: OpenDoor) => {
        // Loaded when somebody comes to look: most of the time only programs do.
        const { forPeople } = await import('./admin/index.ts')
        const own = { access, authenticate, config: config.server, startedAt, version, folder: dashboard }
        const reloading = { ...reload, now: fanOut.reload, history }
        const admin = { ...own, present, reload: reloading, why, metrics, worker: shared }
        return forPeople({ ...lasting, ...admin, auditKey: () => keptAuditKey(config.stores.path) })(open)
      }
      const traced = () => worlds.present.traces !== undefined
      const opening = {
        config: config.server,
        authenticate,
        access,
        info,
        ready: () => true,
        chat: () => (chat.models().length > 0 ? chat : undefined),
        ...{ membership: lasting.membership, workers: shared },
        environmentOf: (...called: NamedIn) => namedEnvironment(worlds.present, ...called),
        jwt: () => worlds.present.entrance.auth.jwt,
        failures: () => worlds.present.entrance.auth,
        people,
        traced,
        clock,
        log,
      }
      startServing()
      door = running.use(await openHttpDoor(opening))
      await Promise.all([lasting.membership?.join(door.address), shared?.join(door.address)])
      return door
    },
    stdio(input, output, agent) {
      startServing()
      const { maxValues } = config.server
      return serveStdio({ input, output, access, info, caller: localAs(agent), maxValues, clock, log })
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  function within(handlerOf: (world: World) => Handler): Handler {
    return (call) => worlds.within((world) => handlerOf(world)(call))
  }

  function why(agent: string, tool: string, { authenticated = true } = {}): Promise<Why> {
    return explain(worlds.present, { agent, tool, authenticated }, { ...local, agent })
  }

  function localAs(agent: string | undefined): Caller {
    const asked = agent === undefined ? {} : { asked: agent }
    return { ...local, ...asked, agent: worlds.present.policy.agentOf(local, agent) }
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
const placesOf = ({ loaded, plugins }: World): readonly string[] => [...loaded.places, ...plugins.value.places]

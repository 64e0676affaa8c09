import { isDeepStrictEqual } from 'node:util'
import { reloadableChat } from '../chat/reloadable-chat.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { ConfigSource } from '../config/locate.ts'
import { ConfigError } from '../config/problems.ts'
import type { Config } from '../config/schema.ts'
import { refuseUnauthenticated } from '../config/unauthenticated.ts'
import { watchFiles } from '../config/watch.ts'
import type { Access } from '../core/access.ts'
import type { Caller, Handler } from '../core/call.ts'
import { systemClock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import { createListeners } from '../lib/listen.ts'
import type { Why } from '../policy/explanation.ts'
import type { Authenticate } from '../serve/auth/identity.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/endpoint.ts'
import { type HttpServer, openHttpServer } from '../serve/http/server.ts'
import { programAccess } from '../serve/program-access.ts'
import { serveStdio } from '../serve/stdio.ts'
import { keptAuditKey } from '../stores/secret-file.ts'
import { registeredTools } from '../tools/tool-source.ts'
import { notifyOfApprovals, type SharedApprovals, shareApprovals } from './approvals.ts'
import { ConfigAudit } from './audit-events.ts'
import { type Cluster, createCluster } from './cluster.ts'
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
import { Reload, type ReloadHistory } from './reload.ts'
import { haveSameUrl, serversOf, unserved } from './upstream-servers.ts'

const everyKind: ReadonlySet<Kind> = new Set(['tool', 'resource', 'template', 'prompt'])

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
  const { log, clock = systemClock, load = async () => first } = options
  const { config } = first
  const tools = registeredTools(options.tools ?? [])
  const startedAt = clock.now()
  await using open = new AsyncDisposableStack()
  let httpServer: HttpServer | undefined
  const processState = open.use(
    await openProcessState(config, () => generations.current, {
      clock,
      log,
      shared: options.shared,
      sessions: () => httpServer?.sessions ?? 0,
      reloads: () => reload.history.status(),
      tokens: () => tokenAccountOfAll(generations.current),
    }),
  )
  const current = (): Generation => generations.current
  const aliveServers = () => new Set(generations.alive.flatMap(serversOf))
  const lists = createListeners<[kinds: ReadonlySet<Kind>, session?: string]>()

  const access: Access = {
    handle: inCurrent(({ pipeline }) => pipeline.handle),
    complete: inCurrent(({ pipeline }) => pipeline.complete),
    relay: (method, call) => generations.run(({ pipeline }) => pipeline.relay(method, call)),
    answerChat: (...params) => generations.run(({ pipeline }) => pipeline.answerChat(...params)),
    subscribe: (...params) => generations.run(({ pipeline }) => pipeline.subscribe(...params)),
    view: (caller) => current().pipeline.view(caller),
    rejected(request) {
      processState.metrics.rejected(request.code)
      processState.rejections.count(request)
      current().pipeline.rejected(request)
    },
    agentOf: (credential, agent) => current().policy.agentOf(credential, agent),
    offers: (caller) => offersTo(caller, current()),
    notifyServers(caller, method) {
      processState.cache.callersChanged()
      for (const server of aliveServers()) server.notifyServer(caller, method)
    },
    sessionEnded(caller) {
      processState.approvals.sessionEnded(caller.session)
      for (const server of aliveServers()) server.sessionEnded(caller)
    },
    onChange: lists.on,
  }
  const context: GenerationContext = {
    ...processState,
    access,
    servedUris: (call) => current().catalog.servedUris(call),
    policy: () => current().policy,
    guards: () => current().guards,
    approvalNeed: ({ entry, caller, approval }) => current().approvalRules.need(entry, caller.agent, approval),
    isRevoked: (principal) => current().inboundAuth.isRevoked(principal),
    unserved: (server) => unserved(server, current()),
    redact: (text) => current().redactor.text(text),
    tools,
    print: options.print,
    status: (caller) => gatewayStatus(current(), caller, reload.history.status()),
  }
  const generations: Generations<Generation> = open.use(
    new Generations<Generation>({
      first: buildGeneration(await prepareConfig(first, context), context),
      clock,
      dispose: (generation) =>
        disposeGeneration(generation).catch((cause: unknown) =>
          log.error({ err: cause }, 'could not close all servers and services of a configuration'),
        ),
    }),
  )
  const { approvals, breakers, bulkhead, pubSub, cache } = processState
  const sharedApprovals = open.use(shareApprovals({ approvals, pubSub, clock, log }))
  const configAudit = new ConfigAudit(processState.audit, await keptAuditKey(config.stores.path), context.redact)
  let serving = false
  /** Records start and stop in the audit log, but not for commands such as `toolway tools`, which serve no clients. */
  const startServing = () => {
    if (serving) return
    serving = true
    configAudit.started(current().loaded.config)
    running.defer(() => configAudit.stopped(current().loaded.config))
  }
  const reload = new Reload({
    audit: configAudit,
    current: () => current().loaded,
    load() {
      files?.reading()
      return load().catch((thrown: unknown) => {
        // Also watch files that the configuration refers to, such as secrets: a missing one may appear later.
        if (thrown instanceof ConfigError) files?.follow([...watchedFiles(current()), ...thrown.filesToWatch])
        throw thrown
      })
    },
    async apply(loaded) {
      refuseUnauthenticated(loaded)
      const before = current()
      await using unfinished = new AsyncDisposableStack()
      const prepared = await prepareConfig(loaded, context, before)
      unfinished.use(prepared.parts)
      unfinished.use(prepared.serverParts)
      const next = buildGeneration(prepared, context, before)
      await startGeneration(next, before, generationListeners)
      generations.replace(next)
      unfinished.move()
      for (const [name, { server, builtFrom }] of before.servers) {
        const replacement = next.servers.get(name)
        if (replacement?.server === server) continue
        breakers.forget(name)
        if (!haveSameUrl(builtFrom.config, replacement?.builtFrom.config)) bulkhead.forget(name)
      }
      bulkhead.limitsChanged()
      // A person gave these approvals under the previous rules.
      processState.approvals.forgetGrants()
      if (!isDeepStrictEqual(before.loaded.config.cache, loaded.config.cache)) cache.clear()
      lists.emit(everyKind)
      files?.follow(watchedFiles(next))
      if (httpServer && loaded.config.inbox.webhook !== undefined) admin?.startInbox()
    },
    clock,
    log,
  })
  open.use(breakers.onChange((server) => current().servers.get(server)?.server.breakerChanged()))
  const cluster = open.use(
    createCluster({
      ...{ pubSub, workers: processState.workers, breakers, current, clock, log },
      reload: () => reload.now(),
      readKeys: () => current().inboundAuth.keysChanged(),
    }),
  )
  const authenticate: Authenticate = (...params) => current().inboundAuth.authenticate(...params)
  const { shared } = options
  const page = shared?.pages(processState.metrics.page) ?? processState.metrics.page
  const admin = open.use(
    openAdmin?.({
      processState,
      config,
      access,
      authenticate,
      current,
      sharedApprovals,
      reload: { now: cluster.reload, history: reload.history },
      cluster,
      source: options.source,
      why,
      metrics: config.telemetry.metrics ? page : undefined,
      worker: shared,
      startedAt,
    }),
  )
  const generationListeners: GenerationListeners = {
    current,
    cache,
    changed: lists.emit,
    serverAdded: cluster.watch,
    log,
  }
  const files = options.watch ? watchFiles(watchedFiles(current()), clock, () => void reload.now()) : undefined
  open.use(files)
  await startGeneration(current(), undefined, generationListeners)

  const chat = reloadableChat(
    () => current().chat,
    (work) => generations.run((generation) => work(generation.chat)),
  )
  const running = open.move()
  let closed: Promise<void> | undefined
  return {
    ...access,
    ...programAccess({ access, localAs, isClosed: () => running.disposed, log }),
    chat,
    get loaded() {
      return current().loaded
    },
    get local() {
      return localAs(undefined)
    },
    localAs,
    get token() {
      return current().token
    },
    why,
    servers: () => current().catalog.summaries(),
    async refresh() {
      await Promise.all(serversOf(current()).map((server) => server.refresh()))
    },
    generations: () => generations.alive.length,
    reloadStatus: () => reload.history.status(),
    async reload() {
      await cluster.reload()
      return reload.history.status()
    },
    async listen() {
      refuseUnauthenticated(current().loaded)
      // Serialize the tool list now, so that the first request does not have to wait for it.
      current().catalog.view(localAs(undefined)).page('tool')
      startServing()
      processState.history?.start()
      httpServer = running.use(
        await openHttpServer({
          config: config.server,
          authenticate,
          access,
          info: identity,
          ready: () => true,
          chat: () => (chat.models().length > 0 ? chat : undefined),
          membership: processState.membership,
          workers: shared,
          environmentOf: (...called: ToolInvocation) => environmentOf(current(), ...called),
          jwt: () => current().inboundAuth.config.jwt,
          failures: () => current().inboundAuth.config,
          ...(admin && { adminEndpoint: admin.endpoint }),
          traced: () => current().traces !== undefined,
          budgets: processState.budgets,
          clock,
          log,
        }),
      )
      // Disposed of before the server, so that calls which wait for a person do not delay the shutdown.
      running.use(approvals.accept())
      const { address, url } = httpServer
      running.use(
        notifyOfApprovals({
          approvals,
          webhook: () => current().loaded.config.approvals.webhook,
          dashboard: new URL(url).origin,
          redact: context.redact,
          clock,
          log,
        }),
      )
      if (current().loaded.config.inbox.webhook !== undefined) admin?.startInbox()
      await Promise.all([processState.membership?.join(address), shared?.join(address)])
      return httpServer
    },
    stdio(input, output, agent) {
      startServing()
      const { maxValues } = config.server
      const { budgets } = processState
      return serveStdio({
        input,
        output,
        access,
        info: identity,
        caller: localAs(agent),
        maxValues,
        budgets,
        clock,
        log,
      })
    },
    // A second caller waits for the first one.
    [Symbol.asyncDispose]() {
      closed ??= running.disposeAsync()
      return closed
    },
  }

  function inCurrent(handlerOf: (generation: Generation) => Handler): Handler {
    return (call) => generations.run((generation) => handlerOf(generation)(call))
  }

  function why(agent: string, tool: string, { authenticated = true } = {}): Promise<Why> {
    return explainDecision(current(), { agent, tool, authenticated }, { ...local, agent })
  }

  function localAs(agent: string | undefined): Caller {
    return { ...local, asked: agent, agent: current().policy.agentOf(local, agent) }
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

type MetricsPage = { readonly body: string; readonly contentType: string }

/** Returns the metrics in the format that the Accept header selects. */
export type MetricsPages = (accept: string | undefined) => MetricsPage | Promise<MetricsPage>

/** What the admin part gets from a gateway. */
export interface GatewayParts {
  readonly processState: ProcessState
  /** The configuration that the process was started with: its address and its stores stay in use after a reload. */
  readonly config: Config
  readonly access: Access
  readonly authenticate: Authenticate
  current(): Generation
  readonly sharedApprovals: SharedApprovals
  readonly reload: {
    /** Reloads the configuration. Never rejects; a failure is recorded in the history. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  /** Actions that apply to all processes that serve this gateway. */
  readonly cluster: Pick<Cluster, 'control' | 'keysChanged'>
  /** Where the configuration is read from; undefined if the gateway was started by a program. */
  readonly source?: ConfigSource | undefined
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
  /** Undefined if metrics are disabled. */
  readonly metrics: MetricsPages | undefined
  /** This worker's number and the number of workers; undefined if there is only one process. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly startedAt: number
}

/** The part of a gateway that operators use. It loads its code when that is needed for the first time. */
export interface AdminPart extends AsyncDisposable {
  endpoint(server: ListeningServer): Promise<HttpEndpoint>
  /** Opens the inbox, for its webhook. */
  startInbox(): void
}

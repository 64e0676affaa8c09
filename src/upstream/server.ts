import type { ServerConfig } from '../config/schema.ts'
import { type Call, type Caller, type CallerIdentity, type Capabilities, clientKey } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, never, waitFor } from '../core/deadline.ts'
import { type Decide, refusalOf } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { CallerChangeListener, Source } from '../core/source.ts'
import type { Health, SourceStatus } from '../core/source-status.ts'
import type { DescriptorStore, Descriptors } from '../core/stores.ts'
import { jsonValue } from '../json/parse-json.ts'
import { asRecord } from '../lib/is-record.ts'
import { listen } from '../lib/listen.ts'
import type { Seal } from '../lib/seal.ts'
import type { Connector } from './connection/connect.ts'
import { ConnectionPool } from './connection/connection-pool.ts'
import type { InitializedConnection } from './connection/handshake.ts'
import type { ManagedConnection } from './connection/managed-connection.ts'
import { createReconnector, type StartQueue } from './connection/reconnect.ts'
import { createServerFindings } from './health/findings.ts'
import { type BreakerCondition, noKnownReads, serverStatus } from './health/health.ts'
import { createHealthCheck } from './health/health-check.ts'
import { createServerHistory } from './health/server-history.ts'
import { hidesEveryTool } from './listing/definitions.ts'
import type { ListLimits } from './listing/list-reader.ts'
import type { ServerOffers } from './listing/offers.ts'
import { fingerprintOf, type ServerListing } from './listing/server-listing.ts'
import { createServerListings } from './listing/server-listings.ts'
import { forwardedEntries } from './requests/forwarded-entries.ts'
import { type ChangeStream, createChangeStream, createUpstreamSubscriptions } from './requests/subscriptions.ts'
import { createServerControl, type ServerControl } from './server-control.ts'
import type { LimitExceeded } from './transports/transport-errors.ts'

export interface UpstreamServerOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly timeoutMs: number
  /** Upper bound for a call's duration if its server reports progress; 10 minutes by default. */
  readonly maxTimeoutMs?: number
  readonly refreshMs: number
  readonly discovery: 'startup' | 'runtime' | 'hybrid'
  readonly listLimits?: ListLimits
  readonly store: DescriptorStore
  readonly connect: Connector
  /** The queue for the first start of each process. Without it, the server starts at once. */
  readonly starts?: StartQueue
  /** Whether the policy allows an entry; called again if a new connection lists a different definition of it. */
  readonly decide?: Decide
  /** Whether the policy allows a caller to use any of these entries; true if not given. */
  mayUseSome?(caller: Caller, entries: readonly Entry[]): boolean
  /** Whether a changed definition can make the policy deny a call; false by default. */
  readonly judgesDefinitions?: () => boolean
  readonly breaker?: () => BreakerCondition
  /** Whether a text from the server, such as its title, may become part of our own tools' descriptions; yes by default. */
  isHarmless?(text: string): boolean
  /** Removes secrets from text. */
  redact?(text: string): string
  /** Converts this server's URIs in the result of a call to those that its caller uses. */
  servedUris(call: Call): (uri: string) => string
  readonly seal: Seal
  /** Interval and timeout for health checks. If absent, there are no health checks. */
  readonly health?: { readonly interval: number; readonly timeout: number }
  /** Whether the server was paused under the previous configuration: a new configuration does not resume it. */
  readonly paused?: boolean
  readonly clock: Clock
  readonly log: Log
}

/** An MCP server as a source of entries. Its listing is cached, and its connections open on demand. */
export interface UpstreamServer extends Source, ServerOffers {
  /** Loads the cached listing, and starts connecting if the configuration asks for it. Never waits for the server. */
  start(): Promise<void>
  seenBy(capabilities: Capabilities, caller?: CallerIdentity): Source
  hasListsFor(caller: CallerIdentity): boolean
  onCallerChange(listener: CallerChangeListener): Disposable
  /** One source for each client profile whose listing was fetched in this run. */
  kinds(): ReadonlyMap<string, Source>
  notifyServer(caller: Caller, method: string): void
  sessionEnded(caller: Caller): void
  breakerChanged(): void
  /** Whether calls wait for a connection to open. */
  opening(): boolean
  readonly control: ServerControl
}

export function createServer(options: UpstreamServerOptions): UpstreamServer {
  const { name, config, clock, log } = options
  const isOnce = options.discovery === 'startup'

  // What is known about the server and its connections.
  const listeners = new Set<() => void>()
  const callerListeners = new Set<CallerChangeListener>()
  const changeStreams = new Map<ManagedConnection, ChangeStream>()
  /** Connections whose lists are still being fetched. Calls on these connections wait until that is done. */
  const unlisted = new WeakMap<InitializedConnection, Promise<unknown>>()
  /** The transport's `gaps` when a connection's lists were last fetched. */
  const gapsListed = new WeakMap<InitializedConnection, number>()
  let health: Health = 'stale'
  let wasHealthy = false
  let since = clock.now()
  let latencyMs: number | undefined
  let wantedAt = 0
  /** The last fetch of lists that a call of an unknown name caused. */
  let relisting: { readonly at: number; readonly done: Promise<void> } | undefined
  let isCalled = false
  let fetched = false
  let hidesTools = false
  const findings = createServerFindings(name, log)
  const history = createServerHistory(clock)

  // The parts. They call the functions below when something happens.
  const control = createServerControl({
    server: name,
    paused: options.paused ?? false,
    connect: options.connect,
    history,
    pool: () => pool,
    changed,
    begin,
    resumed: () => subscriptions.resumed(),
    open: async () => config.disabled || look(plain),
  })
  const pool: ConnectionPool = new ConnectionPool({
    server: name,
    config,
    connect: (scope, signal) =>
      control.unlessPaused(() => options.connect({ ...scope, exceeded: exceededWithoutCall }, signal)),
    mayLog,
    mayReach: (caller) => options.mayUseSome?.(caller, listings.entriesOf(listings.forCaller(caller))) ?? true,
    events: {
      awaitStart: (signal) =>
        config.transport === 'stdio' && !pool.latest ? options.starts?.(() => isCalled, signal) : undefined,
      opening: healthMayHaveChanged,
      opened,
      closed,
      failed,
      broke: ({ connection }, { message }) =>
        history.record('lost', { pid: connection.transport.pid, reason: message }),
      idle: ({ connection }) => history.record('idle', { pid: connection.transport.pid }),
    },
    clock,
    log,
  })
  const healthCheck = createHealthCheck({
    server: name,
    intervalMs: options.health?.interval ?? 0,
    timeoutMs: options.health?.timeout ?? 0,
    connections: () => pool.all,
    healthMayHaveChanged,
    clock,
    log,
  })
  const reconnector = createReconnector({
    down: () => pool.failure !== undefined,
    pauseMs: () => pool.pauseMs,
    wanted: isWanted,
    attempt: async () => pool.forListing({}).open(never),
    clock,
  })
  const subscriptions = createUpstreamSubscriptions({
    server: name,
    connectionOf: (caller) =>
      config.session === 'call' ? pool.forListing(caller.capabilities) : pool.forCaller(caller),
    // A stateless server may run as several processes, so listen on the change streams of all connections.
    changed: () => {
      for (const stream of changeStreams.values()) stream.listen(subscriptions.uris())
    },
    isPaused: () => control.paused,
    clock,
    log,
  })
  const listings = createServerListings({
    common: listingOptions(),
    store: options.store,
    once: isOnce,
    pool,
    examine(listing) {
      fetched ||= listing.fetched
      findings.listed(listing)
      const hidden = hidesEveryTool(config, listing.descriptors?.tools ?? [])
      if (hidden && !hidesTools)
        log.warn({ server: name, reason: noKnownReads(config) }, 'no tool of the server can be used')
      hidesTools = hidden
    },
    changed,
    callerChanged(caller) {
      for (const listener of callerListeners) listener(caller)
    },
  })
  const { plain } = listings
  return {
    ...sourceOf(() => plain),
    async start() {
      if (config.disabled) return changed()
      if (options.discovery === 'hybrid') await plain.recall()
      begin()
    },
    seenBy(capabilities, caller) {
      if (caller === undefined) return sourceOf(() => listings.of(capabilities))
      return sourceOf(() => listings.forCaller(caller), clientKey(caller))
    },
    hasListsFor: (caller) => listings.sessions.of(caller) !== undefined,
    onCallerChange: (listener) => listen(callerListeners, listener),
    kinds() {
      const fetched = [...listings.byProfile].filter(([, one]) => one.fetched)
      return new Map(fetched.map(([kind, one]) => [String(kind), sourceOf(() => one)]))
    },
    get instructions() {
      return (!control.paused && handshake()?.instructions) || ''
    },
    get capabilities() {
      return (!control.paused && handshake()?.capabilities) || {}
    },
    notifyServer: (caller, method) => pool.notifyServer(caller.session, method),
    sessionEnded: (caller) => pool.sessionEnded(caller.session),
    breakerChanged: healthMayHaveChanged,
    opening: () => pool.all.some(({ opening, inUse }) => opening && inUse),
    control,
    async [Symbol.asyncDispose]() {
      const closing = [...listings.byProfile.values()].map((listing) => listing[Symbol.asyncDispose]())
      for (const stream of changeStreams.values()) stream[Symbol.dispose]()
      for (const part of [subscriptions, healthCheck, reconnector]) part[Symbol.dispose]()
      await pool[Symbol.asyncDispose]()
      await listings.sessions[Symbol.asyncDispose]()
      await Promise.all(closing)
    },
  }

  // The listing, as a source of entries.
  /** The last handshake result, from this run or from a cached listing, for whichever clients that was fetched. */
  function handshake() {
    const cached = () =>
      [...listings.byProfile.values()].find(({ descriptors }) => descriptors !== undefined)?.descriptors
    return pool.latest?.handshake ?? plain.descriptors ?? cached()
  }

  function mayLog(): boolean {
    const known = handshake()
    return known === undefined || known.capabilities.logging !== undefined
  }

  function listingOptions() {
    const { timeoutMs, maxTimeoutMs = 600_000, servedUris, seal, decide, refreshMs, listLimits: limits } = options
    const forwarding = { use, subscriptions, servedUris, seal, decide, exceeded, clock }
    const entry = { server: name, config, timeoutMs: config.timeout ?? timeoutMs, maxTimeoutMs, ...forwarding }
    return {
      server: name,
      fingerprint: fingerprintOf(config),
      refreshMs: isOnce ? 0 : refreshMs,
      limits,
      redact: options.redact,
      down: () => pool.failure !== undefined,
      entriesOf: (descriptors: Descriptors) => forwardedEntries(descriptors, entry),
      clock,
      log,
    }
  }

  function exceeded(limit: LimitExceeded, method: string, entry: string): void {
    // Notify listeners of the first one only: a server may exceed a limit with every call.
    if (findings.exceeded(limit, method, entry) === 1) changed()
  }

  function exceededWithoutCall(limit: LimitExceeded): void {
    if (findings.exceededWithoutCall(limit)) changed()
  }

  /** The source for the callers that use this listing; `only` is the key of the caller if there is only one. */
  function sourceOf(listing: () => ServerListing, only?: string): Source {
    return {
      name,
      origin: 'forwarded',
      priority: config.priority,
      timeoutMs: config.timeout ?? options.timeoutMs,
      entries: () => (control.paused ? [] : listings.entriesOf(listing())),
      status: () => status(listing()),
      ready: () => ready(listing()),
      expedite() {
        isCalled = true
      },
      listTtlMs: (kind) => (control.paused ? undefined : listing().ttls[kind]),
      incomplete() {
        const { descriptors, failure, missing } = listing()
        return failure && !descriptors ? allKinds : missing.map(({ kind }) => kind)
      },
      mayHaveResources: () => (handshake()?.capabilities ?? { resources: {} }).resources !== undefined,
      refresh: () => (isOff() ? Promise.resolve() : look(listing())),
      renew: () => (options.discovery === 'runtime' && isLive(listing()) ? listing().renew() : undefined),
      relist: (wake) => relist(listing(), wake),
      onChange(listener) {
        const ofCaller = (changed: CallerIdentity) => clientKey(changed) === only && listener()
        listeners.add(listener)
        if (only !== undefined) callerListeners.add(ofCaller)
        return {
          [Symbol.dispose]() {
            listeners.delete(listener)
            callerListeners.delete(ofCaller)
          },
        }
      },
      async [Symbol.asyncDispose]() {},
    }
  }

  function begin(): void {
    if (!isOff() && (config.connect === 'eager' || isOnce)) void plain.refresh()
  }

  function isOff(): boolean {
    return config.disabled || control.paused
  }

  async function ready(listing: ServerListing): Promise<void> {
    if (isOff() || listing.known()) return
    if (options.discovery === 'hybrid') await listing.recall()
    if (!listing.known()) await look(listing)
  }

  function look(listing: ServerListing): Promise<void> {
    wantedAt = clock.monotonic()
    return listing.refresh()
  }

  /** Fetches the lists again for a call of an unknown name: seldom, because callers can make up any number of names. */
  async function relist(listing: ServerListing, wake: 'wake' | undefined): Promise<void> {
    const now = clock.monotonic()
    const isNew = !listing.fetched && !listing.failure
    const isDue = (!relisting || now - relisting.at >= relistMs) && (wake || pool.connected)
    if ((isNew || isDue) && isLive(listing)) {
      wantedAt = now
      relisting = { at: now, done: listing.renew() }
    }
    await relisting?.done
  }

  function isLive(listing: ServerListing): boolean {
    return !isOff() && !isDown(status(listing).health)
  }

  async function use<T>(call: Call, work: (open: InitializedConnection) => Promise<T>): Promise<T> {
    const start = performance.now()
    wantedAt = clock.monotonic()
    isCalled = true
    let answer: T
    try {
      answer = await control.unlessPaused(() =>
        pool.use(call, (open) => {
          const listed = unlisted.get(open) ?? (mayBeReplaced(open) ? list(open, call.caller.capabilities) : undefined)
          return listed ? sinceListed(listed, call).then(() => work(open)) : work(open)
        }),
      )
    } catch (error) {
      if (error instanceof ToolwayError && error.code === 'AUTH_REQUIRED') checkSignIn()
      throw error
    }
    if (health === 'needs-auth') checkSignIn()
    const ms = performance.now() - start
    // Use an exponential moving average, so that the latency reflects recent calls.
    latencyMs = latencyMs === undefined ? ms : latencyMs * 0.8 + ms * 0.2
    return answer
  }

  /** Fetches the lists, which shows whether all calls need a sign-in, or only one that requires more scopes. */
  function checkSignIn(): void {
    if (pool.personal) return
    const open = pool.current({})
    if (open) plain.changed(open)
    else void plain.refresh()
  }

  /** Whether another program may have replaced an HTTP server since the policy evaluated its definitions. */
  function mayBeReplaced(open: InitializedConnection): boolean {
    const { gaps } = open.connection.transport
    return gaps !== undefined && gaps !== gapsListed.get(open) && (options.judgesDefinitions?.() ?? false)
  }

  /** Fetches the lists again. All calls that arrive in the meantime share one fetch. */
  function list(open: InitializedConnection, capabilities: Capabilities): Promise<unknown> | undefined {
    const found = listings.through(open, capabilities)
    if (found.length === 0) return undefined
    const { gaps } = open.connection.transport
    if (gaps !== undefined) gapsListed.set(open, gaps)
    const listed = Promise.allSettled(found.map((listing) => listing.opened(open)))
    unlisted.set(open, listed)
    void listed.then(() => unlisted.delete(open))
    return listed
  }

  /** Waits, for a limited time, for a new connection's lists, so that a changed definition is noticed (B5). */
  async function sinceListed(listed: Promise<unknown>, call: Call): Promise<void> {
    using patience = deadline(clock, listedWithinMs, () => new Error('listing timed out'), call.signal)
    await waitFor(listed, patience.signal).catch((error) => {
      call.signal.throwIfAborted()
      log.debug({ server: name, err: error }, 'calling a tool whose definition could not be rechecked')
    })
    const { kind, name: called } = call.entry
    const entry = listings
      .entriesOf(listings.forCaller(call.caller))
      .find((one) => one.kind === kind && one.name === called)
    const decision = entry && entry !== call.entry ? options.decide?.(call.caller, entry) : undefined
    if (decision && !decision.allowed) throw refusalOf(decision, name)
  }

  // What happens to connections.
  function opened(open: InitializedConnection, capabilities: Capabilities, managed: ManagedConnection): void {
    const modern = open.handshake.era === 'modern'
    const listChanged = () => {
      for (const listing of listings.through(open, capabilities)) listing.changed(open)
    }
    const notified = (method: string, params: Buffer | undefined) => {
      if (method.endsWith('/list_changed')) return listChanged()
      const { uri } = asRecord(method === 'notifications/resources/updated' && jsonValue(params?.toString() ?? '{}'))
      // A session-based connection reports only the changes that were subscribed to on that connection.
      if (typeof uri === 'string') subscriptions.updated(uri, modern ? undefined : managed)
    }
    open.connection.onNotification = notified
    changeStreams.get(managed)?.[Symbol.dispose]()
    if (modern) {
      const missed = () => {
        listChanged()
        for (const uri of subscriptions.uris()) subscriptions.updated(uri)
      }
      const stream = createChangeStream(open, { server: name, onStreamNotification: notified, missed, clock, log })
      changeStreams.set(managed, stream)
      if (subscriptions.uris().length > 0) stream.listen(subscriptions.uris())
    } else subscriptions.reopened(managed, open)
    // With a connection for each call, the starts would push everything else out of the history.
    if (config.session !== 'call') history.record('started', { pid: open.connection.transport.pid })
    healthCheck.opened()
    healthMayHaveChanged()
    void list(open, capabilities)
  }

  function closed(managed: ManagedConnection): void {
    changeStreams.get(managed)?.[Symbol.dispose]()
    changeStreams.delete(managed)
    subscriptions.lost(managed)
    listings.sessions.connectionClosed()
    healthMayHaveChanged()
  }

  function failed({ message }: ToolwayError): void {
    history.record('failed', { reason: message })
    reconnector.failed()
    healthMayHaveChanged()
  }

  /** Whether to reconnect in the background: to a remote server always, to a process only until its idle timeout. */
  function isWanted(): boolean {
    if (config.transport !== 'stdio' || config.connect === 'eager' || config.idle === 0) return true
    return clock.monotonic() - wantedAt < config.idle
  }

  /** Notifies listeners only if the health changed, because connections open and close with every call. */
  function healthMayHaveChanged(): void {
    if (status(plain).health !== health) changed()
  }

  function changed(): void {
    const { health: now, reason, transport, protocolVersion } = status(plain)
    if (now !== health) {
      since = clock.now()
      if (isDown(now)) log.warn({ server: name, reason }, `server is ${now}`)
      else if (isDown(health)) log.info({ server: name, health: now }, 'server is up again')
      else if (now === 'healthy' && !wasHealthy)
        log.info({ server: name, transport, protocolVersion }, 'server is connected')
      wasHealthy ||= now === 'healthy'
    }
    health = now
    for (const listener of listeners) listener()
  }

  /** Until lists have been fetched for any client, the listing whose fetch failed, for whichever client it was. */
  function withReason(listing: ServerListing): ServerListing {
    if (fetched || listing.failure || listing.fetching) return listing
    return [...listings.byProfile.values()].find(({ failure }) => failure !== undefined) ?? listing
  }

  function status(own: ServerListing): SourceStatus {
    const listing = withReason(own)
    return serverStatus({
      ...{ config, pool, listing, since, latencyMs },
      handshake: handshake(),
      starting: !fetched && (pool.connected || pool.opening),
      paused: control.paused,
      breaker: options.breaker?.() ?? { state: 'closed' },
      degradation: healthCheck.degradation,
      findings: findings.of(listing, pool),
      isHarmless: options.isHarmless,
    })
  }
}

const allKinds = ['tool', 'resource', 'template', 'prompt'] as const

/** How often calls of unknown names can cause lists to be fetched. */
const relistMs = 5_000

/** How long a call waits for a new connection's lists. */
const listedWithinMs = 10_000

const isDown = (health: Health): boolean => health === 'unhealthy' || health === 'needs-auth'

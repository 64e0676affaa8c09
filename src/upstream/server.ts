import { isDeepStrictEqual } from 'node:util'
import { type Caller, type CallerIdentity, type Capabilities, clientKey } from '../core/call.ts'
import type { Entry, Kind } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { CallerChangeListener, Source } from '../core/source.ts'
import type { SourceStatus } from '../core/source-status.ts'
import type { ToolSelection } from '../core/tool-overrides.ts'
import { jsonValue } from '../json/parse-json.ts'
import { asRecord } from '../lib/is-record.ts'
import { createListeners } from '../lib/listen.ts'
import { ConnectionPool } from './connection/connection-pool.ts'
import type { HandshakeResult, InitializedConnection } from './connection/handshake.ts'
import type { ManagedConnection } from './connection/managed-connection.ts'
import { HealthLog, isDown, noKnownReads, ServerFindings, serverStatus } from './health/health.ts'
import { HealthCheck } from './health/health-check.ts'
import { hidesEveryTool } from './listing/definitions.ts'
import type { ServerOffers } from './listing/offers.ts'
import type { ServerListing } from './listing/server-listing.ts'
import { ServerListings } from './listing/server-listings.ts'
import { EntryForwarder, type ForwardingPort } from './requests/forwarded-entries.ts'
import { ChangeStream, UpstreamSubscriptions } from './requests/subscriptions.ts'
import { ServerControl, ServerHistory, turnedOff } from './server-control.ts'
import type { UpstreamServerOptions } from './server-options.ts'
import type { LimitExceeded } from './transports/transport-errors.ts'

const allKinds = ['tool', 'resource', 'template', 'prompt', 'skill'] as const

/** How often calls of unknown names can cause lists to be fetched. */
const relistMs = 5_000

/** An MCP server as a source of entries. Its listing is cached, and its connections open on demand. */
export class UpstreamServer implements Source, ServerOffers {
  readonly name: string
  readonly origin = 'forwarded'
  readonly priority: number
  readonly timeoutMs: number
  readonly control: ServerControl
  #options: UpstreamServerOptions
  readonly #pool: ConnectionPool
  readonly #listings: ServerListings
  readonly #forwarder: EntryForwarder
  readonly #subscriptions: UpstreamSubscriptions
  readonly #changeStreams = new Map<ManagedConnection, ChangeStream>()
  readonly #healthCheck: HealthCheck
  readonly #findings: ServerFindings
  readonly #history: ServerHistory
  readonly #changes = createListeners<[]>()
  readonly #callerChanges = createListeners<[CallerIdentity]>()
  readonly #health: HealthLog
  #latencyMs: number | undefined
  /** When the server was last needed, by the monotonic clock. */
  #wantedAt = 0
  /** The last fetch of lists that a call of an unknown name caused. */
  #relisting: { readonly at: number; readonly done: Promise<void> } | undefined
  #isCalled = false
  #hasFetched = false
  #hidesTools = false

  constructor(options: UpstreamServerOptions) {
    const { name, config, defaults, clock, log } = options
    this.#options = options
    this.name = name
    this.priority = config.priority
    this.timeoutMs = config.timeout ?? defaults.timeoutMs
    this.#health = new HealthLog(name, clock, log)
    this.#findings = new ServerFindings(name, log)
    this.#history = new ServerHistory(clock)
    this.#pool = this.#createPool()
    this.control = this.#createControl()
    this.#subscriptions = this.#createSubscriptions()
    this.#forwarder = this.#createForwarder()
    this.#listings = new ServerListings(options, this.#pool, {
      entriesOf: (descriptors) => this.#forwarder.entries(descriptors),
      examine: (listing) => this.#examine(listing),
      changed: () => this.#changed(),
      callerChanged: (caller) => this.#callerChanges.emit(caller),
    })
    this.#healthCheck = new HealthCheck({
      server: name,
      intervalMs: defaults.health?.interval ?? 0,
      timeoutMs: defaults.health?.timeout ?? 0,
      connections: () => this.#pool.all,
      healthMayHaveChanged: () => this.#healthMayHaveChanged(),
      clock,
      log,
    })
  }

  #createPool(): ConnectionPool {
    const { name, config, host, connect, policy, clock, log } = this.#options
    return new ConnectionPool({
      server: name,
      config,
      connect: async (scope, signal) => {
        if (this.control.paused) throw turnedOff(name)
        const exceeded = (limit: LimitExceeded) => {
          if (this.#findings.exceededWithoutCall(limit)) this.#changed()
        }
        return connect({ ...scope, exceeded }, signal)
      },
      mayLog: () => this.#mayLog(),
      mayReach: (caller) =>
        policy?.mayUseSome?.(caller, this.#listings.entriesOf(this.#listings.forCaller(caller))) ?? true,
      events: {
        isWanted: () => this.#isWanted(),
        awaitStart: (signal) =>
          config.transport === 'stdio' && !this.#pool.latest ? host.starts?.(() => this.#isCalled, signal) : undefined,
        opening: () => this.#healthMayHaveChanged(),
        opened: (open, capabilities, managed) => this.#opened(open, capabilities, managed),
        closed: (managed) => this.#closed(managed),
        failed: (error) => this.#failed(error),
        broke: ({ connection }, { message }) =>
          this.#history.record('lost', { pid: connection.transport.pid, reason: message }),
        idle: ({ connection }) => this.#history.record('idle', { pid: connection.transport.pid }),
      },
      clock,
      log,
    })
  }

  #createControl(): ServerControl {
    const { name, config, host, connect } = this.#options
    return new ServerControl(name, host.paused ?? false, {
      pool: this.#pool,
      history: this.#history,
      stderr: () => connect.stderr?.() ?? [],
      changed: () => this.#changed(),
      begin: () => this.#begin(),
      resumed: () => this.#subscriptions.resumed(),
      open: async () => config.disabled || this.#fetch(this.#listings.plain),
    })
  }

  #createSubscriptions() {
    const { name: server, config, clock, log } = this.#options
    return new UpstreamSubscriptions({
      connectionOf: (caller) =>
        config.session === 'call' ? this.#pool.forListing(caller.capabilities) : this.#pool.forCaller(caller),
      // A stateless server may run as several processes, so listen on the change streams of all connections.
      changed: () => {
        for (const stream of this.#changeStreams.values()) stream.listen(this.#subscriptions.uris())
      },
      isPaused: () => this.control.paused,
      ...{ server, clock, log },
    })
  }

  #createForwarder(): EntryForwarder {
    return new EntryForwarder(this.#options, {
      use: this.#use,
      subscriptions: this.#subscriptions,
      answered: (ms) => {
        if (this.#health.current === 'needs-auth') this.#checkSignIn()
        // Use an exponential moving average, so that the latency reflects recent calls.
        this.#latencyMs = this.#latencyMs === undefined ? ms : this.#latencyMs * 0.8 + ms * 0.2
      },
      failed: (error) => {
        if (error instanceof ToolwayError && error.code === 'AUTH_REQUIRED') this.#checkSignIn()
      },
      outdated: () => void this.relist('wake'),
      exceeded: (limit, method, entry) => {
        // Notify listeners of the first one only: a server may exceed a limit with every call.
        if (this.#findings.exceeded(limit, method, entry) === 1) this.#changed()
      },
    })
  }

  #examine(listing: ServerListing): void {
    const { name, config, log } = this.#options
    this.#hasFetched ||= listing.fetched
    this.#findings.listed(listing)
    const hidden = hidesEveryTool(config, listing.descriptors?.tools ?? [])
    if (hidden && !this.#hidesTools)
      log.warn({ server: name, reason: noKnownReads(config) }, 'no tool of the server can be used')
    this.#hidesTools = hidden
  }

  // The server as a source of entries. Without a listing, as clients without capabilities see it.
  /** Loads the cached listing, and starts connecting if the configuration asks for it. Never waits for the server. */
  async start(): Promise<void> {
    if (this.#options.config.disabled) return this.#changed()
    await this.#listings.plain.recall()
    this.#begin()
  }

  entries(listing = this.#listings.plain): readonly Entry[] {
    return this.control.paused ? [] : this.#listings.entriesOf(listing)
  }

  status(own = this.#listings.plain): SourceStatus {
    const { config, host, policy } = this.#options
    const pool = this.#pool
    const listing = this.#withReason(own)
    return serverStatus({
      ...{ config, pool, listing, since: this.#health.since, latencyMs: this.#latencyMs },
      handshake: this.#handshake(),
      starting: !this.#hasFetched && (pool.connected || pool.opening),
      paused: this.control.paused,
      breaker: host.breaker?.() ?? { state: 'closed' },
      degradation: this.#healthCheck.degradation,
      findings: this.#findings.of(listing, pool),
      isHarmless: policy?.isHarmless,
    })
  }

  async ready(listing = this.#listings.plain): Promise<void> {
    if (this.#isOff || listing.known()) return
    await listing.recall()
    if (!listing.known()) await this.#fetch(listing)
  }

  expedite(): void {
    this.#isCalled = true
  }

  /** Changes which tools there are and what callers see of them. Connections stay open. */
  selectTools(tools: ToolSelection): void {
    const { config } = this.#options
    if (isDeepStrictEqual(config.tools, tools)) return
    this.#options = { ...this.#options, config: { ...config, tools } }
    this.#forwarder.selectTools(tools)
    this.#listings.remakeEntries()
  }

  listTtlMs(kind: Kind, listing = this.#listings.plain): number | undefined {
    return this.control.paused ? undefined : listing.ttls[kind]
  }

  incomplete({ descriptors, failure, missing } = this.#listings.plain): readonly Kind[] {
    return failure && !descriptors ? allKinds : missing.map(({ kind }) => kind)
  }

  mayHaveResources(): boolean {
    return (this.#handshake()?.capabilities ?? { resources: {} }).resources !== undefined
  }

  refresh(listing = this.#listings.plain): Promise<void> {
    return this.#isOff ? Promise.resolve() : this.#fetch(listing)
  }

  renew(listing = this.#listings.plain): Promise<void> | undefined {
    return this.#options.defaults.discovery === 'runtime' && this.#isLive(listing) ? listing.renew() : undefined
  }

  /** Fetches the lists again for a call of an unknown name: seldom, because callers can make up any number of names. */
  async relist(wake?: 'wake', listing = this.#listings.plain): Promise<void> {
    const now = this.#options.clock.monotonic()
    const isNew = !listing.fetched && !listing.failure
    const isDue = (!this.#relisting || now - this.#relisting.at >= relistMs) && (wake || this.#pool.connected)
    if ((isNew || isDue) && this.#isLive(listing)) {
      this.#wantedAt = now
      this.#relisting = { at: now, done: listing.renew() }
    }
    await this.#relisting?.done
  }

  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener)
  }

  onCallerChange(listener: CallerChangeListener): Disposable {
    return this.#callerChanges.on(listener)
  }

  seenBy(capabilities: Capabilities, caller?: CallerIdentity): Source {
    if (caller === undefined) return this.#view(() => this.#listings.of(capabilities))
    return this.#view(() => this.#listings.forCaller(caller), clientKey(caller))
  }

  /** The server as the callers see it that use this listing; `only` is the key of the caller if there is only one. */
  #view(listing: () => ServerListing, only?: string): Source {
    const { name, origin, priority, timeoutMs } = this
    return {
      ...{ name, origin, priority, timeoutMs },
      entries: () => this.entries(listing()),
      status: () => this.status(listing()),
      ready: () => this.ready(listing()),
      expedite: () => this.expedite(),
      listTtlMs: (kind) => this.listTtlMs(kind, listing()),
      incomplete: () => this.incomplete(listing()),
      mayHaveResources: () => this.mayHaveResources(),
      refresh: () => this.refresh(listing()),
      renew: () => this.renew(listing()),
      relist: (wake) => this.relist(wake, listing()),
      onChange: (listener) => {
        const changes = new DisposableStack()
        changes.use(this.onChange(listener))
        if (only !== undefined) changes.use(this.onCallerChange((caller) => clientKey(caller) === only && listener()))
        return changes
      },
      async [Symbol.asyncDispose]() {},
    }
  }

  hasListsFor(caller: CallerIdentity): boolean {
    return this.#listings.ofCaller(caller) !== undefined
  }

  /** One source for each kind of client whose listing was fetched in this run. */
  kinds(): ReadonlyMap<string, Source> {
    const fetched = [...this.#listings.byProfile].filter(([, listing]) => listing.fetched)
    return new Map(fetched.map(([kind, listing]) => [String(kind), this.#view(() => listing)]))
  }

  get instructions(): string {
    return (!this.control.paused && this.#handshake()?.instructions) || ''
  }

  get capabilities(): Capabilities {
    return (!this.control.paused && this.#handshake()?.capabilities) || {}
  }

  notifyServer(caller: Caller, method: string): void {
    this.#pool.notifyServer(caller.session, method)
  }

  sessionEnded(caller: Caller): void {
    this.#pool.sessionEnded(caller.session)
  }

  breakerChanged(): void {
    this.#healthMayHaveChanged()
  }

  /** Whether calls wait for a connection to open. */
  opening(): boolean {
    return this.#pool.all.some(({ opening, inUse }) => opening && inUse)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closing = this.#listings[Symbol.asyncDispose]()
    for (const stream of this.#changeStreams.values()) stream[Symbol.dispose]()
    for (const part of [this.#subscriptions, this.#healthCheck]) part[Symbol.dispose]()
    await this.#pool[Symbol.asyncDispose]()
    await closing
  }

  get #isOff(): boolean {
    return this.#options.config.disabled || this.control.paused
  }

  #begin(): void {
    const { config, defaults } = this.#options
    if (!this.#isOff && (config.connect === 'eager' || defaults.discovery === 'startup'))
      void this.#listings.plain.refresh()
  }

  #fetch(listing: ServerListing): Promise<void> {
    this.#wantedAt = this.#options.clock.monotonic()
    return listing.refresh()
  }

  #isLive(listing: ServerListing): boolean {
    return !this.#isOff && !isDown(this.status(listing).health)
  }

  /** The last handshake result, from this run or from a cached listing, for whichever clients that was fetched. */
  #handshake(): HandshakeResult | undefined {
    const { plain, byProfile } = this.#listings
    const cached = () => [...byProfile.values()].find(({ descriptors }) => descriptors !== undefined)?.descriptors
    return this.#pool.latest?.handshake ?? plain.descriptors ?? cached()
  }

  #mayLog(): boolean {
    const known = this.#handshake()
    return known === undefined || known.capabilities.logging !== undefined
  }

  readonly #use: ForwardingPort['use'] = (call, work) => {
    if (this.control.paused) return Promise.reject(turnedOff(this.name))
    this.#wantedAt = this.#options.clock.monotonic()
    this.#isCalled = true
    return this.#pool.use(call, (open) => {
      const checked = this.#listings.whenChecked(open, call)
      return checked ? checked.then(() => work(open)) : work(open)
    })
  }

  /** Fetches the lists, which shows whether all calls need a sign-in, or only one that requires more scopes. */
  #checkSignIn(): void {
    if (this.#pool.personal) return
    const open = this.#pool.current({})
    if (open) this.#listings.plain.changed(open)
    else void this.#listings.plain.refresh()
  }

  #opened(open: InitializedConnection, capabilities: Capabilities, managed: ManagedConnection): void {
    const { config } = this.#options
    const isModern = open.handshake.era === 'modern'
    const onNotification = (method: string, params: Buffer | undefined) => {
      if (method.endsWith('/list_changed')) return this.#listings.changed(open, capabilities)
      const { uri } = asRecord(method === 'notifications/resources/updated' && jsonValue(params?.toString() ?? '{}'))
      // A session-based connection reports only the changes that were subscribed to on that connection.
      if (typeof uri === 'string') this.#subscriptions.updated(uri, isModern ? undefined : managed)
    }
    open.connection.onNotification = onNotification
    this.#changeStreams.get(managed)?.[Symbol.dispose]()
    if (isModern) this.#followChanges(open, capabilities, managed, onNotification)
    else this.#subscriptions.reopened(managed, open)
    // With a connection for each call, the starts would push everything else out of the history.
    if (config.session !== 'call') this.#history.record('started', { pid: open.connection.transport.pid })
    this.#healthCheck.opened()
    this.#healthMayHaveChanged()
    void this.#listings.fetch(open, capabilities)
  }

  #followChanges(
    open: InitializedConnection,
    capabilities: Capabilities,
    managed: ManagedConnection,
    onStreamNotification: (method: string, params: Buffer | undefined) => void,
  ): void {
    const { name, clock, log } = this.#options
    const missed = () => {
      this.#listings.changed(open, capabilities)
      for (const uri of this.#subscriptions.uris()) this.#subscriptions.updated(uri)
    }
    const stream = new ChangeStream(open, { server: name, onStreamNotification, missed, clock, log })
    this.#changeStreams.set(managed, stream)
    if (this.#subscriptions.uris().length > 0) stream.listen(this.#subscriptions.uris())
  }

  #closed(managed: ManagedConnection): void {
    this.#changeStreams.get(managed)?.[Symbol.dispose]()
    this.#changeStreams.delete(managed)
    this.#subscriptions.lost(managed)
    this.#listings.connectionClosed()
    this.#healthMayHaveChanged()
  }

  #failed({ message }: ToolwayError): void {
    this.#history.record('failed', { reason: message })
    this.#healthMayHaveChanged()
  }

  /** Whether to reconnect in the background: to a remote server always, to a process only until its idle timeout. */
  #isWanted(): boolean {
    const { config, clock } = this.#options
    if (config.transport !== 'stdio' || config.connect === 'eager' || config.idle === 0) return true
    return clock.monotonic() - this.#wantedAt < config.idle
  }

  /** Notifies listeners only if the health changed, because connections open and close with every call. */
  #healthMayHaveChanged(): void {
    if (this.status().health !== this.#health.current) this.#changed()
  }

  #changed(): void {
    this.#health.record(this.status())
    this.#changes.emit()
  }

  /** Until lists have been fetched for any client, the listing whose fetch failed, for whichever client it was. */
  #withReason(listing: ServerListing): ServerListing {
    if (this.#hasFetched || listing.failure || listing.fetching) return listing
    return [...this.#listings.byProfile.values()].find(({ failure }) => failure !== undefined) ?? listing
  }
}

import { createHash } from 'node:crypto'
import type { ServerConfig } from '../config/schema.ts'
import type { Call, Caller } from '../core/call.ts'
import { type Capabilities, profileOf } from '../core/capabilities.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, waitFor } from '../core/deadline.ts'
import { type Decide, refusalOf } from '../core/decision.ts'
import type { DescriptorStore } from '../core/descriptors.ts'
import type { Entry } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import type { Health, SourceStatus } from '../core/source-status.ts'
import type { Seal } from '../lib/seal.ts'
import type { Connect } from './connection/connect.ts'
import { createLines } from './connection/connection-pool.ts'
import type { OpenLine } from './connection/handshake.ts'
import type { Line } from './connection/managed-connection.ts'
import { createRecovery } from './connection/reconnect.ts'
import { type BreakerCondition, serverStatus } from './health/health.ts'
import { type Checks, createChecks } from './health/health-check.ts'
import type { Advice } from './listing/offers.ts'
import { createOutlook, type Outlook } from './listing/server-listing.ts'
import { forwardedEntries } from './requests/forwarded-entries.ts'
import { createListening, createSubscriptions, type Listening } from './requests/subscriptions.ts'
import { type Control, createControl } from './server-control.ts'

export interface ServerOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly timeoutMs: number
  /** Of a call whose server reports progress; ten minutes, where it is not said. */
  readonly maxTimeoutMs?: number
  /** How old what is known of it may get. */
  readonly refreshMs: number
  readonly discovery: 'startup' | 'runtime' | 'hybrid'
  readonly store: DescriptorStore
  readonly connect: Connect
  /** What policy says of an entry now; asked again where a new connection shows it with another definition. */
  readonly decide?: Decide
  /** Whether a changed definition can make policy refuse a call; not by default. */
  readonly judgesDefinitions?: () => boolean
  /** Whether calls are let through to it, as the pipeline sees it. */
  readonly breaker?: () => BreakerCondition
  /** The form under which callers know a URI of this server. */
  servedUri(uri: string): string
  readonly seal: Seal
  /** How often an open line is checked, and how long an answer to that may take; never, where there is none. */
  readonly health?: { readonly interval: number; readonly timeout: number }
  /** Whether the one before it was turned off: another configuration of it does not turn it on again. */
  readonly paused?: boolean
  readonly clock: Clock
  readonly log: Log
}

/** An MCP server as a source of entries: what it offers is remembered, its lines are opened when somebody needs them. */
export interface Server extends Source, Advice {
  /** Recalls what was known of it, and connects where the configuration asks for that. Never waits for the server. */
  start(): Promise<void>
  seenBy(capabilities: Capabilities): Source
  /** The same for every kind of client that it has been heard for in this run, by kind. */
  kinds(): ReadonlyMap<string, Source>
  inform(caller: Caller, method: string): void
  left(caller: Caller): void
  /** Its breaker has opened or closed, which changes its health. */
  breakerChanged(): void
  /** What an operator can do with it while it runs. */
  readonly control: Control
}

/** Kinds of clients, by what they can be asked for. */
const maxOutlooks = 32

export function createServer(options: ServerOptions): Server {
  const { name, config, clock, log } = options
  const fingerprint = fingerprintOf(config)
  const outlooks = new Map<string, Outlook>()
  const listeners = new Set<() => void>()
  const listening = new Map<Line, Listening>()
  /** Connections whose lists are still being read: calls on them wait for that. */
  const unlisted = new WeakMap<OpenLine, Promise<unknown>>()
  /** The `gaps` of a connection's transport when its lists were last read. */
  const gapsListed = new WeakMap<OpenLine, number>()
  let health: Health = 'stale'
  let since = clock.now()
  let latencyMs: number | undefined
  let wantedAt = 0
  /** Whether any kind of client has had an answer to what it offers, in this run. */
  let heard = false

  const control = createControl({
    server: name,
    paused: options.paused ?? false,
    connect: options.connect,
    lines: () => lines,
    changed,
    begin,
    open: async () => config.disabled || look(plain),
  })
  const connect: Connect = (tenancy, signal) => control.unlessPaused(() => options.connect(tenancy, signal))
  const lines = createLines({
    server: name,
    config,
    connect,
    mayLog,
    opening: judged,
    opened,
    closed,
    failed,
    clock,
    log,
  })
  const checks: Checks = createChecks({
    server: name,
    intervalMs: options.health?.interval ?? 0,
    timeoutMs: options.health?.timeout ?? 0,
    lines: () => lines.all,
    judged,
    clock,
    log,
  })
  const recovery = createRecovery({
    down: () => lines.failure !== undefined,
    pauseMs: () => lines.pauseMs,
    wanted: isWanted,
    attempt: async () => lines.forListing({}).open(never),
    clock,
  })
  const subscriptions = createSubscriptions({
    server: name,
    lineOf: (caller) => (config.session === 'call' ? lines.forListing(caller.capabilities) : lines.of(caller)),
    // A change in any process of a stateless server is a change of the server.
    changed: () => {
      for (const ear of listening.values()) ear.listen(subscriptions.uris())
    },
    clock,
    log,
  })
  const plain = outlookOf({})
  return {
    ...sourceOf(plain),
    async start() {
      if (config.disabled) return changed()
      if (options.discovery === 'hybrid') await plain.recall()
      begin()
    },
    seenBy: (capabilities) => sourceOf(outlookOf(capabilities)),
    kinds: () => new Map([...outlooks].flatMap(([kind, one]) => (one.heard ? [[kind, sourceOf(one)]] : []))),
    get instructions() {
      return (!control.paused && introduction()?.instructions) || ''
    },
    get capabilities() {
      return (!control.paused && introduction()?.capabilities) || {}
    },
    inform: (caller, method) => lines.inform(caller.session, method),
    left: (caller) => lines.left(caller.session),
    breakerChanged: judged,
    control,
    async [Symbol.asyncDispose]() {
      for (const outlook of outlooks.values()) outlook[Symbol.dispose]()
      for (const ear of listening.values()) ear[Symbol.dispose]()
      for (const part of [subscriptions, checks, recovery]) part[Symbol.dispose]()
      await lines[Symbol.asyncDispose]()
    },
  }

  /** What the server said of itself last, in this run or before it. */
  function introduction() {
    return lines.latest?.introduction ?? plain.descriptors
  }

  function mayLog(): boolean {
    const known = introduction()
    return known === undefined || known.capabilities.logging !== undefined
  }

  function outlookOf(capabilities: Capabilities): Outlook {
    const profile = profileOf(capabilities)
    const known = outlooks.get(profile)
    if (known) return known
    // A client of an unheard-of kind beyond the bound sees what the plainest kind sees.
    if (outlooks.size >= maxOutlooks) return plain
    const { timeoutMs, maxTimeoutMs = 600_000, servedUri, seal } = options
    const forwarding = { use, subscriptions, servedUri, seal, clock }
    const entry = { server: name, config, timeoutMs: config.timeout ?? timeoutMs, maxTimeoutMs, ...forwarding }
    const outlook: Outlook = createOutlook({
      server: name,
      capabilities,
      fingerprint,
      refreshMs: options.refreshMs,
      store: options.store,
      line: () => lines.forListing(capabilities),
      current: () => lines.current(capabilities),
      down: () => lines.failure !== undefined,
      entriesOf: (descriptors) => forwardedEntries(descriptors, entry),
      news() {
        heard ||= outlook.heard
        changed()
      },
      clock,
      log,
    })
    outlooks.set(profile, outlook)
    return outlook
  }

  function sourceOf(outlook: Outlook): Source {
    return {
      name,
      origin: 'forwarded',
      priority: config.priority,
      timeoutMs: config.timeout ?? options.timeoutMs,
      entries: () => (control.paused ? [] : seen(outlook)),
      status: () => status(outlook),
      ready: () => ready(outlook),
      refresh: () => (isOff() ? Promise.resolve() : look(outlook)),
      onChange(listener) {
        listeners.add(listener)
        return { [Symbol.dispose]: () => listeners.delete(listener) }
      },
      async [Symbol.asyncDispose]() {},
    }
  }

  function begin(): void {
    if (isOff()) return
    if (config.connect === 'eager' || options.discovery === 'startup') void plain.refresh()
  }

  function isOff(): boolean {
    return config.disabled || control.paused
  }

  async function ready(outlook: Outlook): Promise<void> {
    if (isOff() || outlook.known()) return
    if (options.discovery === 'hybrid') await outlook.recall()
    if (!outlook.known()) await look(outlook)
  }

  function look(outlook: Outlook): Promise<void> {
    wantedAt = clock.monotonic()
    return outlook.refresh()
  }

  async function use<T>(call: Call, work: (open: OpenLine) => Promise<T>): Promise<T> {
    const start = performance.now()
    wantedAt = clock.monotonic()
    const answer = await control.unlessPaused(() =>
      lines.use(call, (open) => {
        const listed = unlisted.get(open) ?? (mayBeReplaced(open) ? list(open, call.caller.capabilities) : undefined)
        return listed ? sinceListed(listed, call).then(() => work(open)) : work(open)
      }),
    )
    const ms = performance.now() - start
    // The mean follows the last calls, so that health shows how the server is now.
    latencyMs = latencyMs === undefined ? ms : latencyMs * 0.8 + ms * 0.2
    return answer
  }

  /** Whether another program may answer over HTTP than the one whose definitions policy has judged. */
  function mayBeReplaced(open: OpenLine): boolean {
    const { gaps } = open.connection.transport
    return gaps !== undefined && gaps !== gapsListed.get(open) && (options.judgesDefinitions?.() ?? false)
  }

  /** Reads the lists again, once for all calls that come meanwhile. */
  function list(open: OpenLine, capabilities: Capabilities): Promise<unknown> | undefined {
    const outlooks = seenThrough(open, capabilities)
    if (outlooks.length === 0) return undefined
    const { gaps } = open.connection.transport
    if (gaps !== undefined) gapsListed.set(open, gaps)
    const listed = Promise.allSettled(outlooks.map((outlook) => outlook.opened(open)))
    unlisted.set(open, listed)
    void listed.then(() => unlisted.delete(open))
    return listed
  }

  /** A changed definition is noticed before the first call on a new connection (B5), unless the lists take too long. */
  async function sinceListed(listed: Promise<unknown>, call: Call): Promise<void> {
    using patience = deadline(clock, listedWithinMs, () => new Error('its lists take too long'), call.signal)
    await waitFor(listed, patience.signal).catch((error) => {
      call.signal.throwIfAborted()
      log.debug({ server: name, err: error }, 'a call goes on although the definitions could not be read again')
    })
    const { kind, name: called } = call.entry
    const entry = seen(outlookOf(call.caller.capabilities)).find((one) => one.kind === kind && one.name === called)
    const decision = entry && entry !== call.entry ? options.decide?.(call.caller, entry) : undefined
    if (decision && !decision.allowed) throw refusalOf(decision, name)
  }

  /** What clients of a kind are shown: what all are, until it has been heard for them. */
  function seen(outlook: Outlook): readonly Entry[] {
    return (outlook.descriptors ? outlook : plain).entries
  }

  function opened(open: OpenLine, capabilities: Capabilities, line: Line): void {
    const { connection, introduction } = open
    const heard = (method: string, params: Buffer | undefined) => notified(open, capabilities, line, method, params)
    connection.onNotification = heard
    listening.get(line)?.[Symbol.dispose]()
    if (introduction.era === 'modern') {
      const missed = () => {
        for (const outlook of seenThrough(open, capabilities)) outlook.changed(open)
        for (const uri of subscriptions.uris()) subscriptions.updated(uri)
      }
      const ear = createListening(open, { server: name, heard, missed, clock, log })
      listening.set(line, ear)
      const followed = subscriptions.uris()
      if (followed.length > 0) ear.listen(followed)
    } else subscriptions.reopened(line, open)
    checks.opened()
    judged()
    void list(open, capabilities)
  }

  function notified(open: OpenLine, capabilities: Capabilities, line: Line, method: string, params?: Buffer): void {
    if (method === 'notifications/resources/updated') {
      const { uri } = JSON.parse(params?.toString() ?? '{}')
      // In the era with sessions each line tells of what was asked for on it.
      if (typeof uri === 'string') subscriptions.updated(uri, open.introduction.era === 'legacy' ? line : undefined)
    } else if (method.endsWith('/list_changed')) {
      for (const outlook of seenThrough(open, capabilities)) outlook.changed(open)
    }
  }

  /** A line of the stateless era shows the server to everybody, one with a handshake to those it was made for. */
  function seenThrough({ introduction, principal }: OpenLine, capabilities: Capabilities): Outlook[] {
    // What one principal is shown for its own credential is nobody else's business.
    if (principal !== undefined) return []
    return introduction.era === 'modern' ? [...outlooks.values()] : [outlookOf(capabilities)]
  }

  function closed(line: Line): void {
    listening.get(line)?.[Symbol.dispose]()
    listening.delete(line)
    subscriptions.lost(line)
    judged()
  }

  function failed(): void {
    recovery.failed()
    judged()
  }

  /** A process is tried again as long as it would not have been put to sleep; what runs elsewhere costs nothing to ask. */
  function isWanted(): boolean {
    if (config.transport !== 'stdio' || config.connect === 'eager' || config.idle === 0) return true
    return clock.monotonic() - wantedAt < config.idle
  }

  /** Lines come and go with calls: that alone is no news. */
  function judged(): void {
    if (status(plain).health !== health) changed()
  }

  function changed(): void {
    const now = status(plain).health
    if (now !== health) {
      since = clock.now()
      if (isDown(now)) log.warn({ server: name, reason: status(plain).reason }, `a server is ${now}`)
      else if (isDown(health)) log.info({ server: name, health: now }, 'a server is back')
    }
    health = now
    for (const listener of listeners) listener()
  }

  function status(outlook: Outlook): SourceStatus {
    const breaker = options.breaker?.() ?? { state: 'closed' as const }
    const starting = !heard && (lines.connected || lines.opening)
    const line = { starting, strain: checks.strain, paused: control.paused, latencyMs, breaker }
    return serverStatus({ config, lines, outlook, introduction: introduction(), since, ...line })
  }
}

/** How long a call waits for the lists of a new connection. */
const listedWithinMs = 10_000

const never = new AbortController().signal
const isDown = (health: Health): boolean => health === 'unhealthy' || health === 'needs-auth'

/** Changes when a server may have become another one, so that what is remembered of the old one is not shown for it. */
function fingerprintOf(config: ServerConfig): string {
  // Values of the environment are secrets more often than not; that they are set is enough to tell servers apart.
  const identity =
    config.transport === 'stdio'
      ? [config.command, config.args, config.cwd, Object.keys(config.env).sort()]
      : [config.transport, config.url]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16)
}

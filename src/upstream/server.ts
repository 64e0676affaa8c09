import type { ServerConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { DescriptorStore, Descriptors } from '../core/descriptors.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Health, Source, SourceStatus } from '../core/source.ts'
import type { Request } from './connection.ts'
import { discover, type Offer } from './discover.ts'
import { forwardedEntries } from './entries.ts'
import { fingerprintOf } from './fingerprint.ts'
import { type Condition, judge } from './health.ts'
import { createLine, type OpenLine } from './line.ts'

export interface ServerOptions {
  readonly name: string
  readonly config: ServerConfig
  readonly timeoutMs: number
  /** How old what is known of it may get. */
  readonly refreshMs: number
  readonly discovery: 'startup' | 'runtime' | 'hybrid'
  readonly store: DescriptorStore
  /** Opens a line to it and shakes hands. */
  connect(signal: AbortSignal): Promise<OpenLine>
  servedUri(uri: string): string
  readonly clock: Clock
  readonly log: Log
}

/** An MCP server as a source of entries: what it offers is remembered, its line is opened when somebody needs it. */
export interface Server extends Source {
  /** Recalls what was known of it, and connects where the configuration asks for that. Never waits for the server. */
  start(): Promise<void>
}

const listWithinMs = 30_000

export function createServer(options: ServerOptions): Server {
  const { name, config, clock, log } = options
  const fingerprint = fingerprintOf(config)
  const listeners = new Set<() => void>()
  const never = new AbortController().signal
  let descriptors: Descriptors | undefined
  let entries: readonly Entry[] = []
  let heard = false
  let lost: ToolwayError | undefined
  let listFailure: ToolwayError | undefined
  let missing: readonly string[] = []
  let listing: Promise<void> | undefined
  let listAgain = false
  let refreshTimer: Disposable | undefined
  let health: Health = 'stale'
  let since = clock.now()
  let latencyMs: number | undefined

  const line = createLine({
    server: name,
    connect: options.connect,
    idleMs: config.transport === 'stdio' && config.idle > 0 ? config.idle : undefined,
    opened,
    closed,
    failed: () => changed(),
    clock,
    log,
  })

  return {
    name,
    origin: 'forwarded',
    priority: config.priority,
    entries: () => entries,
    status,
    ready: () => (config.disabled || known() ? Promise.resolve() : refresh()),
    refresh,
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => listeners.delete(listener) }
    },
    async start() {
      if (config.disabled) return changed()
      if (options.discovery === 'hybrid') {
        const remembered = await options.store.load(name, fingerprint)
        if (remembered) learn(remembered)
      }
      if (config.connect === 'eager' || options.discovery === 'startup') void refresh()
    },
    async [Symbol.asyncDispose]() {
      refreshTimer?.[Symbol.dispose]()
      await line[Symbol.asyncDispose]()
      await listing?.catch(() => {})
    },
  }

  /** Remembered descriptors are good enough to answer with; old ones are checked behind the answer, once a run. */
  function known(): boolean {
    if (!descriptors) return false
    if (!heard && !line.failure && clock.now() - descriptors.fetchedAt > options.refreshMs) void refresh()
    return true
  }

  async function refresh(): Promise<void> {
    if (config.disabled) return
    try {
      await line.open(never)
      await list()
    } catch (error) {
      log.debug({ server: name, err: error }, 'could not refresh what a server offers')
    }
  }

  function opened(open: OpenLine): void {
    lost = undefined
    open.connection.onNotification = (method) => {
      if (method.endsWith('/list_changed')) list({ again: true }).catch(() => {})
    }
    changed()
    list().catch(() => {})
  }

  function closed(error?: ToolwayError): void {
    lost = error
    refreshTimer?.[Symbol.dispose]()
    changed()
  }

  /** One listing at a time; `again` for news that the one under way may have missed. */
  function list({ again = false } = {}): Promise<void> {
    if (listing) listAgain ||= again
    listing ??= listOnce().finally(() => {
      listing = undefined
      if (!listAgain) return
      listAgain = false
      list().catch(() => {})
    })
    return listing
  }

  async function listOnce(): Promise<void> {
    const open = line.current
    if (!open) return
    refreshTimer?.[Symbol.dispose]()
    using limit = deadline(clock, listWithinMs, tooSlow)
    try {
      const { introduction } = open
      const offer = await discover(open.connection, introduction.capabilities, {
        server: name,
        log,
        signal: limit.signal,
      })
      missing = offer.failed
      listFailure = undefined
      const fresh = { ...introduction, ...kept(offer), fetchedAt: clock.now() }
      const news = !heard || differs(fresh, descriptors)
      heard = true
      if (news) learn(fresh)
      if (news) await options.store.save(name, fingerprint, fresh).catch(unsaved)
    } catch (thrown) {
      listFailure = ToolwayError.from(thrown)
      changed()
      throw thrown
    } finally {
      if (line.current === open) refreshTimer = clock.after(options.refreshMs, () => list().catch(() => {}))
    }
  }

  /** A list that failed this time keeps what it said last time. */
  function kept({ failed, ...offer }: Offer): Omit<Offer, 'failed'> {
    const old = (method: string, key: keyof typeof offer) =>
      failed.includes(method) ? (descriptors?.[key] ?? []) : offer[key]
    return {
      tools: old('tools/list', 'tools'),
      resources: old('resources/list', 'resources'),
      templates: old('resources/templates/list', 'templates'),
      prompts: old('prompts/list', 'prompts'),
    }
  }

  function learn(fresh: Descriptors): void {
    descriptors = fresh
    const { timeoutMs, servedUri } = options
    entries = forwardedEntries(fresh, { server: name, config, timeoutMs: config.timeout ?? timeoutMs, send, servedUri })
    changed()
  }

  function changed(): void {
    const now = judge(condition()).health
    if (now !== health) since = clock.now()
    health = now
    for (const listener of listeners) listener()
  }

  function condition(): Condition {
    const { current, failure } = line
    const knownSince = descriptors?.fetchedAt
    return {
      disabled: config.disabled,
      connected: current !== undefined,
      failure,
      lost,
      listFailure,
      missing,
      heard,
      knownSince,
    }
  }

  function status(): SourceStatus {
    const introduction = line.current?.introduction ?? descriptors
    return {
      ...judge(condition()),
      since,
      description:
        text(config.description) ?? text(introduction?.serverInfo.title) ?? text(introduction?.serverInfo.name) ?? '',
      transport: config.transport,
      ...(introduction && { era: introduction.era, protocolVersion: introduction.protocolVersion }),
      ...(line.failure && { lastError: line.failure.message }),
      ...(!line.failure && lost && { lastError: lost.message }),
      ...(latencyMs !== undefined && { latencyMs: Math.round(latencyMs * 100) / 100 }),
      breaker: 'closed',
    }
  }

  async function send(request: Request): Promise<Buffer> {
    const start = performance.now()
    const answer = await line.use(({ connection }) => connection.request(request), request.signal)
    const ms = performance.now() - start
    // The mean follows the last calls, so that health shows how the server is now.
    latencyMs = latencyMs === undefined ? ms : latencyMs * 0.8 + ms * 0.2
    return answer
  }

  function tooSlow(): ToolwayError {
    return new ToolwayError('TIMEOUT', `${name} did not list what it offers within ${listWithinMs / 1000} s.`, {
      server: name,
    })
  }

  function unsaved(error: unknown): void {
    log.warn({ server: name, err: error }, 'could not remember what a server offers; the next start will ask it again')
  }
}

/** Whether callers would see a difference. */
const differs = (a: Descriptors, b: Descriptors | undefined): boolean =>
  JSON.stringify({ ...a, fetchedAt: 0 }) !== JSON.stringify({ ...b, fetchedAt: 0 })

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

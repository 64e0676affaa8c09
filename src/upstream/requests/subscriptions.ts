import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, never } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { asRecord } from '../../lib/is-record.ts'
import { methodNotFound } from '../../wire/message.ts'
import type { InitializedConnection } from '../connection/handshake.ts'
import type { ManagedConnection } from '../connection/managed-connection.ts'
import { encodeRequest } from './encode-request.ts'

/** Resource subscriptions at one server. Callers that follow the same resource on the same connection share one. */
export interface UpstreamSubscriptions extends Disposable {
  subscribe(caller: Caller, uri: string, updated: () => void): Promise<AsyncDisposable>
  /** The resources that change streams should report. */
  uris(): string[]
  /** Called when a resource changed, with the connection whose subscriptions that concerns, or for a change stream. */
  updated(uri: string, managed?: ManagedConnection): void
  /** Called when a connection is open again: renews its subscriptions. */
  reopened(managed: ManagedConnection, open: InitializedConnection): void
  /** Called when a connection was lost: if it has subscriptions, reconnects without waiting for a call. */
  lost(managed: ManagedConnection): void
  /** Called when the server is no longer paused: reconnects for all subscriptions. */
  resumed(): void
}

export interface UpstreamSubscriptionsOptions {
  readonly server: string
  connectionOf(caller: Caller): ManagedConnection
  /** Called when the subscriptions changed, to update a stateless server's change stream with all of them. */
  changed(): void
  isPaused(): boolean
  readonly clock: Clock
  readonly log: Log
}

interface Followed {
  readonly hold: Disposable
  readonly listeners: Set<() => void>
  confirmed: Promise<void>
  /** Whether a subscribe request was sent to the server. Only then is the subscription renewed. */
  isSent: boolean
}

const requestTimeoutMs = 10_000
const firstPauseMs = 1_000
const maxPauseMs = 30_000
/** A change stream that ends sooner than this counts as a failure. */
const stableMs = 10_000

export function createUpstreamSubscriptions(options: UpstreamSubscriptionsOptions): UpstreamSubscriptions {
  const { server, clock, log } = options
  const followed = new Map<ManagedConnection, Map<string, Followed>>()
  const timers = new Map<ManagedConnection, Disposable>()
  const renewals = new Set<Disposable>()

  /** Reopens a connection, with growing pauses, until it is open again or has no subscriptions left. */
  const reopenAfter = (managed: ManagedConnection, pauseMs: number): void => {
    const reopen = () => {
      timers.delete(managed)
      if (!followed.has(managed) || managed.current || managed.ended || options.isPaused()) return
      managed.reopen().catch(() => reopenAfter(managed, Math.min(pauseMs * 2, maxPauseMs)))
    }
    timers.get(managed)?.[Symbol.dispose]()
    timers.set(managed, clock.after(pauseMs, reopen))
  }

  const on = (managed: ManagedConnection): Map<string, Followed> => {
    const known = followed.get(managed) ?? new Map<string, Followed>()
    followed.set(managed, known)
    return known
  }

  /** What is followed through the change streams. A connection with a session reports its own subscriptions. */
  const onStreams = (): Map<string, Followed>[] =>
    [...followed].flatMap(([{ current }, uris]) => (current?.handshake.era === 'legacy' ? [] : [uris]))

  const tell = async (open: InitializedConnection, method: string, uri: string): Promise<void> => {
    if (open.handshake.era === 'modern') return options.changed()
    using limit = deadline(clock, requestTimeoutMs, () => tooSlow(server, method))
    const members = [Buffer.from(`"uri":${JSON.stringify(uri)}`)]
    await open.connection.request(encodeRequest(open, { method, members, capabilities: {}, signal: limit.signal }))
  }

  /** Subscribes again on a new connection, with growing pauses until the server accepts it. */
  const renew = (managed: ManagedConnection, open: InitializedConnection, uri: string, pauseMs: number): void => {
    const entry = followed.get(managed)?.get(uri)
    if (!entry?.isSent || managed.current !== open) return
    entry.confirmed = tell(open, 'resources/subscribe', uri)
    entry.confirmed.catch((error) => {
      if (followed.get(managed)?.get(uri) !== entry || managed.current !== open) return
      const level = pauseMs === firstPauseMs ? 'warn' : 'debug'
      log[level]({ server, uri, err: error, pauseMs }, 'could not renew a resource subscription; trying again')
      const timer = clock.after(pauseMs, () => {
        renewals.delete(timer)
        renew(managed, open, uri, Math.min(pauseMs * 2, maxPauseMs))
      })
      renewals.add(timer)
    })
  }

  const release = async (managed: ManagedConnection, uri: string, updated: () => void): Promise<void> => {
    const entry = followed.get(managed)?.get(uri)
    if (!entry?.listeners.delete(updated) || entry.listeners.size > 0) return
    on(managed).delete(uri)
    if (on(managed).size === 0) followed.delete(managed)
    entry.hold[Symbol.dispose]()
    if (managed.current) await tell(managed.current, 'resources/unsubscribe', uri).catch(() => {})
  }

  return {
    async subscribe(caller, uri, given) {
      // Each subscription is a separate listener, even if the same function is passed twice.
      const updated = () => given()
      const managed = options.connectionOf(caller)
      const onConnection = on(managed)
      const entry: Followed = onConnection.get(uri) ?? {
        hold: managed.hold(),
        listeners: new Set(),
        isSent: false,
        confirmed: managed.open(never).then((open) => {
          entry.isSent = true
          return tell(open, 'resources/subscribe', uri)
        }),
      }
      entry.listeners.add(updated)
      onConnection.set(uri, entry)
      try {
        await entry.confirmed
      } catch (error) {
        await release(managed, uri, updated)
        throw error
      }
      return { [Symbol.asyncDispose]: () => release(managed, uri, updated) }
    },
    uris: () => [...new Set(onStreams().flatMap((uris) => [...uris.keys()]))],
    updated(uri, managed) {
      const concerned = managed ? [followed.get(managed)] : onStreams()
      for (const uris of concerned) for (const listener of uris?.get(uri)?.listeners ?? []) listener()
    },
    reopened(managed, open) {
      for (const uri of followed.get(managed)?.keys() ?? []) renew(managed, open, uri, firstPauseMs)
    },
    lost(managed) {
      if (followed.has(managed)) reopenAfter(managed, firstPauseMs)
    },
    resumed() {
      for (const managed of followed.keys()) reopenAfter(managed, firstPauseMs)
    },
    [Symbol.dispose]() {
      followed.clear()
      for (const timer of [...timers.values(), ...renewals]) timer[Symbol.dispose]()
    },
  }
}

function tooSlow(server: string, method: string): ToolwayError {
  const sentence = `${server} did not answer ${method} within ${requestTimeoutMs / 1000} s (a fixed limit).`
  return new ToolwayError('TIMEOUT', sentence, { server })
}

/** The `subscriptions/listen` stream of a stateless server, one for all callers. */
export interface ChangeStream extends Disposable {
  /** Listens for changes to these resources, and for the list changes that the server declares. */
  listen(uris: readonly string[]): void
}

interface ChangeStreamOptions {
  readonly server: string
  onStreamNotification(method: string, params: Buffer | undefined): void
  /** Called if changes may have been missed while the stream was down. */
  missed(): void
  readonly clock: Clock
  readonly log: Log
}

export function createChangeStream(open: InitializedConnection, options: ChangeStreamOptions): ChangeStream {
  const { server, missed, clock, log } = options
  const lists = listsOf(open)
  let uris: readonly string[] = []
  let current: AbortController | undefined
  let timer: Disposable | undefined
  let over = false
  let pauseMs = firstPauseMs
  let startedAt = 0
  let isInterrupted = false

  const onStreamNotification = (method: string, params: Buffer | undefined) => {
    // The stream is open again, but changes during the interruption were not reported.
    if (isInterrupted && method === 'notifications/subscriptions/acknowledged') {
      isInterrupted = false
      missed()
    }
    options.onStreamNotification(method, params)
  }

  const start = () => {
    current?.abort(replaced)
    const filter = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) }
    if (over || Object.keys(filter).length === 0) return
    const controller = new AbortController()
    const { signal } = controller
    current = controller
    startedAt = clock.monotonic()
    const members = [Buffer.from(`"notifications":${JSON.stringify(filter)}`)]
    const spec = { method: 'subscriptions/listen', members, capabilities: {}, onStreamNotification, signal }
    open.connection.request(encodeRequest(open, spec)).then(
      () => later(controller),
      (error) => {
        if (signal.aborted) return
        log.debug({ server, err: error }, 'change stream ended')
        if (error instanceof ServerError && error.error.value.code === methodNotFound) return
        later(controller)
      },
    )
  }

  /** Subscribes again after a pause: the server may end the stream at any time, and does not remember subscriptions. */
  const later = (ended: AbortController) => {
    if (over || ended !== current) return
    isInterrupted = true
    if (clock.monotonic() - startedAt >= stableMs) pauseMs = firstPauseMs
    timer = clock.after(pauseMs, start)
    pauseMs = Math.min(pauseMs * 2, maxPauseMs)
  }

  start()
  return {
    listen(wanted) {
      uris = wanted
      timer?.[Symbol.dispose]()
      start()
    },
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
      current?.abort(replaced)
    },
  }
}

const replaced = new Error('replaced by a new subscriptions/listen request')

/** The lists for which the server announces changes. All other lists are refreshed periodically. */
function listsOf({ handshake }: InitializedConnection): Record<string, boolean> {
  const changes = (name: string) => asRecord(handshake.capabilities[name]).listChanged === true
  const changing = ['tools', 'prompts', 'resources'].filter(changes)
  return Object.fromEntries(changing.map((name) => [`${name}ListChanged`, true]))
}

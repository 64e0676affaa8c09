import type { ServerResponse } from 'node:http'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Budgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import { setBounded } from '../lib/memoize.ts'
import { ownAgents } from '../serve/auth/identity.ts'
import { dropWhenStalled } from '../serve/http/sse-stream.ts'
import { eventBytes, keepAlive } from '../wire/sse.ts'
import type { AdminEvents, CallView } from './contract.ts'
import { jsonBytes } from './router.ts'
import type { AdminService } from './service.ts'

interface LiveOptions {
  readonly budgets: Pick<Budgets, 'dashboards'>
  readonly clock: Clock
  readonly log: Log
}

interface LiveReader {
  readonly caller: Caller
  readonly response: ServerResponse
  readonly pending: Map<string, CallView>
  /** What was last sent of each event that is sent only when it has changed. */
  readonly sent: Map<keyof AdminEvents, unknown>
  sentAt: number
}

/** Interval at which calls are sent. The overview and changed servers are sent once a second. */
const liveTickMs = 250
const ticksPerOverview = 4

/** Maximum unread bytes per reader. Above this, events are skipped: later events contain the current state. */
const maxUnreadLiveBytes = 256 * 1024

const maxLiveCalls = 100
const maxNews = 2_000
const maxSilenceMs = 15_000

/** Sends events to all open dashboards. Does no work while there are no readers. */
export class LiveEvents implements Disposable {
  readonly #admin: AdminService
  readonly #options: LiveOptions
  readonly #readers = new Set<LiveReader>()
  #watching: DisposableStack | undefined
  #timer: Disposable | undefined
  #ticks = 0
  /** How often the approvals have changed. */
  #approvals = 0
  #inbox: Buffer | undefined

  constructor(admin: AdminService, options: LiveOptions) {
    this.#admin = admin
    this.#options = options
  }

  /** Turns the response into an event stream. Throws OVERLOADED if too many streams are open. */
  open(caller: Caller, response: ServerResponse): void {
    const { clock } = this.#options
    const { dashboards } = this.#options.budgets
    // Reject non-admins while half of the streams are open, so that admins can still connect.
    if (!caller.admin && this.#readers.size >= dashboards.limit / 2) {
      const sentence = `${this.#readers.size} dashboards are already open: close one, or try again later.`
      throw new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 5_000 })
    }
    const reader: LiveReader = { caller, response, pending: new Map(), sent: new Map(), sentAt: clock.monotonic() }
    // Before the stream starts, compute everything that can fail.
    const overview = jsonBytes(this.#admin.overview(caller))
    const servers = this.#readServers(caller)
    const calls = jsonBytes(this.#admin.calls(caller, { limit: maxLiveCalls }).toReversed())
    dashboards.claim(caller.principal)
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    })
    dropWhenStalled(response)
    this.#readers.add(reader)
    this.#watching ??= this.#watch()
    response.once('close', () => this.#remove(reader))
    this.#send(reader, 'overview', overview)
    this.#sendServers(reader, servers)
    this.#send(reader, 'calls', calls)
    this.#sendApprovals(reader)
    const reload = caller.admin ? this.#admin.lastReload() : undefined
    if (reload) this.#send(reader, 'reload', jsonBytes(reload))
    this.#sendInbox(reader)
  }

  [Symbol.dispose](): void {
    for (const { response } of this.#readers) response.end()
    for (const reader of this.#readers) this.#remove(reader)
  }

  #remove(reader: LiveReader): void {
    if (this.#readers.delete(reader)) this.#options.budgets.dashboards.give(reader.caller.principal)
    if (this.#readers.size > 0) return
    this.#watching?.[Symbol.dispose]()
    this.#watching = undefined
  }

  #watch(): DisposableStack {
    const stack = new DisposableStack()
    stack.use(this.#admin.onCalls((calls) => this.#noteCalls(calls)))
    stack.use(this.#admin.onApprovals(() => void this.#approvals++))
    stack.use(
      this.#admin.onReload((event) => {
        for (const reader of this.#readers) if (reader.caller.admin) this.#send(reader, 'reload', jsonBytes(event))
      }),
    )
    stack.use(
      this.#admin.onInbox((view) => {
        this.#inbox = jsonBytes(view)
        for (const reader of this.#readers) this.#sendInbox(reader)
      }),
    )
    this.#inbox = jsonBytes(this.#admin.inbox())
    this.#tickLater()
    stack.defer(() => this.#timer?.[Symbol.dispose]())
    return stack
  }

  #noteCalls(calls: readonly CallView[]): void {
    for (const { caller, pending } of this.#readers) {
      const own = ownAgents(caller)
      for (const call of calls) {
        if (caller.admin || own.has(call.agent)) setBounded(pending, call.id, call, maxNews)
      }
    }
  }

  #tickLater(): void {
    const { clock, log } = this.#options
    this.#timer = clock.after(liveTickMs, () => {
      this.#tickLater()
      try {
        this.#tick()
      } catch (cause) {
        log.error({ err: cause }, 'cannot send events to dashboards')
      }
    })
  }

  #tick(): void {
    const { clock } = this.#options
    const overview = ++this.#ticks % ticksPerOverview === 0
    const overviewOf = sharedByRights((caller) => jsonBytes(this.#admin.overview(caller)))
    const serversOf = sharedByRights((caller) => this.#readServers(caller))
    for (const reader of this.#readers) {
      // Keep unsent calls while the reader is behind: a call shown as running must later be shown as ended.
      const { pending, response } = reader
      if (pending.size > 0 && this.#send(reader, 'calls', jsonBytes([...pending.values()]))) pending.clear()
      this.#sendApprovals(reader)
      if (overview) {
        this.#send(reader, 'overview', overviewOf(reader))
        this.#sendServers(reader, serversOf(reader))
      }
      // Again for readers that were behind when it changed.
      this.#sendInbox(reader)
      // Send a keep-alive comment only if nothing is unread; otherwise it would hide that the reader has stalled.
      if (clock.monotonic() - reader.sentAt >= maxSilenceMs && response.writableLength === 0) {
        response.write(keepAlive)
        reader.sentAt = clock.monotonic()
      }
    }
  }

  #readServers(caller: Caller): ServerState {
    const servers = this.#admin.servers(caller)
    return { bytes: jsonBytes(servers), state: JSON.stringify(servers, withoutRates) }
  }

  #sendServers(reader: LiveReader, { bytes, state }: ServerState): void {
    this.#sendIfNew(reader, 'servers', state, () => bytes)
  }

  #sendApprovals(reader: LiveReader): void {
    this.#sendIfNew(reader, 'approvals', this.#approvals, () => jsonBytes(this.#admin.approvals(reader.caller)))
  }

  #sendInbox(reader: LiveReader): void {
    const inbox = this.#inbox
    if (inbox && reader.caller.admin) this.#sendIfNew(reader, 'inbox', inbox, () => inbox)
  }

  /** Sends an event unless the reader has it. A reader that is too far behind gets it later. */
  #sendIfNew(reader: LiveReader, event: keyof AdminEvents, state: unknown, data: () => Buffer): void {
    if (reader.sent.get(event) !== state && this.#send(reader, event, data())) reader.sent.set(event, state)
  }

  /** Sends an event. Returns false if the reader is too far behind. */
  #send(reader: LiveReader, event: keyof AdminEvents, data: Buffer): boolean {
    if (reader.response.writableLength > maxUnreadLiveBytes) return false
    reader.response.write(eventBytes({ event, data }))
    reader.sentAt = this.#options.clock.monotonic()
    return true
  }
}

interface ServerState {
  readonly bytes: Buffer
  readonly state: string
}

/** Computes a value with `make` once for all readers that have the same rights. */
function sharedByRights<T>(make: (caller: Caller) => T): (reader: LiveReader) => T {
  const made = new Map<string, T>()
  return ({ caller }) => {
    const rights = JSON.stringify([caller.agent, caller.authenticated, caller.admin])
    const known = made.get(rights) ?? make(caller)
    made.set(rights, known)
    return known
  }
}

/** Leaves out rates, which change with the time even if nothing happens. */
const withoutRates = (key: string, value: unknown): unknown => (key === 'perSecond' ? undefined : value)

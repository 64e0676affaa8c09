import type { ServerResponse } from 'node:http'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Budget } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import { setBounded } from '../lib/memoize.ts'
import { ownAgents } from '../serve/auth/identity.ts'
import { HttpError } from '../serve/errors.ts'
import { dropWhenStalled } from '../serve/http/sse-stream.ts'
import { eventBytes, keepAlive } from '../wire/sse.ts'
import type { AdminEvents, CallView } from './contract.ts'
import type { AdminService } from './service.ts'

export type LiveEvents = ReturnType<typeof createLiveEvents>

type Source = Pick<
  AdminService,
  | 'overview'
  | 'servers'
  | 'calls'
  | 'approvals'
  | 'inbox'
  | 'onApprovals'
  | 'onCalls'
  | 'onInbox'
  | 'onReload'
  | 'lastReload'
>

interface Reader {
  readonly caller: Caller
  readonly response: ServerResponse
  /** Calls that have not been sent yet, by id. */
  readonly pending: Map<string, CallView>
  /** The server list that was last sent to this reader, without rates. */
  servers: string | undefined
  /** Whether the approvals have changed since they were last sent. */
  approvalsChanged: boolean
  /** The inbox that was last sent to this reader. */
  inbox: Buffer | undefined
  sentAt: number
}

/** Interval at which calls are sent. The overview and changed servers are sent once a second. */
const tickMs = 250
const ticksPerOverview = 4

/** Maximum unread bytes per reader. Above this, events are skipped: later events contain the current state. */
const maxUnread = 256 * 1024

const maxCalls = 100
const maxNews = 2_000
const silentMs = 15_000

/** Sends events to all open dashboards. Does no work while there are no readers. */
export function createLiveEvents(admin: Source, options: { dashboards: Budget; clock: Clock; log: Log }) {
  const { dashboards, clock, log } = options
  const readers = new Set<Reader>()
  let watching: DisposableStack | undefined
  let ticks = 0
  let inbox: Buffer | undefined

  /** Sends an event. Returns false if the reader is too far behind. */
  const send = (reader: Reader, event: keyof AdminEvents, data: Buffer): boolean => {
    if (reader.response.writableLength > maxUnread) return false
    reader.response.write(eventBytes({ event, data }))
    reader.sentAt = clock.monotonic()
    return true
  }

  /** Computes a value with `make` once for all readers that have the same rights. */
  const shared = <T>(make: (caller: Caller) => T) => {
    const made = new Map<string, T>()
    return ({ caller }: Reader): T => {
      const rights = JSON.stringify([caller.agent, caller.authenticated, caller.admin])
      const known = made.get(rights) ?? make(caller)
      made.set(rights, known)
      return known
    }
  }

  const readServers = (caller: Caller) => {
    const servers = admin.servers(caller)
    return { bytes: bytesOf(servers), state: JSON.stringify(servers, withoutRates) }
  }

  const sendServers = (reader: Reader, { bytes, state }: ReturnType<typeof readServers>) => {
    if (reader.servers !== state && send(reader, 'servers', bytes)) reader.servers = state
  }

  const sendApprovals = (reader: Reader) => {
    if (send(reader, 'approvals', bytesOf(admin.approvals(reader.caller)))) reader.approvalsChanged = false
  }

  const sendInbox = (reader: Reader) => {
    if (!inbox || reader.inbox === inbox || !reader.caller.admin) return
    if (send(reader, 'inbox', inbox)) reader.inbox = inbox
  }

  const tick = () => {
    const overview = ++ticks % ticksPerOverview === 0
    const overviewOf = shared((caller) => bytesOf(admin.overview(caller)))
    const serversOf = shared(readServers)
    for (const reader of readers) {
      // Keep unsent calls while the reader is behind: a call shown as running must later be shown as ended.
      const { pending } = reader
      if (pending.size > 0 && send(reader, 'calls', bytesOf([...pending.values()]))) pending.clear()
      if (reader.approvalsChanged) sendApprovals(reader)
      if (overview) {
        send(reader, 'overview', overviewOf(reader))
        sendServers(reader, serversOf(reader))
      }
      // Again for readers that were behind when it changed.
      sendInbox(reader)
      // Send a keep-alive comment only if nothing is unread; otherwise it would hide that the reader has stalled.
      if (clock.monotonic() - reader.sentAt >= silentMs && reader.response.writableLength === 0) {
        reader.response.write(keepAlive)
        reader.sentAt = clock.monotonic()
      }
    }
  }

  const onCalls = (calls: readonly CallView[]) => {
    for (const { caller, pending } of readers) {
      const own = ownAgents(caller)
      for (const call of calls) {
        if (!caller.admin && !own.has(call.agent)) continue
        setBounded(pending, call.id, call, maxNews)
      }
    }
  }

  const watch = (): DisposableStack => {
    const stack = new DisposableStack()
    stack.use(admin.onCalls(onCalls))
    stack.use(
      admin.onApprovals(() => {
        for (const reader of readers) reader.approvalsChanged = true
      }),
    )
    stack.use(
      admin.onReload((event) => {
        for (const reader of readers) if (reader.caller.admin) send(reader, 'reload', bytesOf(event))
      }),
    )
    stack.use(
      admin.onInbox((view) => {
        inbox = bytesOf(view)
        for (const reader of readers) sendInbox(reader)
      }),
    )
    inbox = bytesOf(admin.inbox())
    let timer: Disposable | undefined
    const next = () => {
      timer = clock.after(tickMs, () => {
        next()
        try {
          tick()
        } catch (cause) {
          log.error({ err: cause }, 'cannot send events to dashboards')
        }
      })
    }
    next()
    stack.defer(() => timer?.[Symbol.dispose]())
    return stack
  }

  const left = (reader: Reader) => {
    if (readers.delete(reader)) dashboards.give(reader.caller.principal)
    if (readers.size > 0) return
    watching?.[Symbol.dispose]()
    watching = undefined
  }

  return {
    /** Turns the response into an event stream. Throws OVERLOADED if too many streams are open. */
    open(caller: Caller, response: ServerResponse): void {
      // Reject non-admins while half of the streams are open, so that admins can still connect.
      if (!caller.admin && readers.size >= dashboards.limit / 2) throw tooManyReaders(readers.size)
      const unsent = { pending: new Map(), servers: undefined, inbox: undefined, approvalsChanged: true }
      const reader: Reader = { caller, response, ...unsent, sentAt: clock.monotonic() }
      // Before the stream starts, compute everything that can fail.
      const overview = bytesOf(admin.overview(caller))
      const servers = readServers(caller)
      const calls = bytesOf(admin.calls(caller, { limit: maxCalls }).toReversed())
      dashboards.claim(caller.principal)
      response.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store, no-transform',
        'X-Accel-Buffering': 'no',
      })
      dropWhenStalled(response)
      readers.add(reader)
      watching ??= watch()
      response.once('close', () => left(reader))
      send(reader, 'overview', overview)
      sendServers(reader, servers)
      send(reader, 'calls', calls)
      sendApprovals(reader)
      const reload = caller.admin ? admin.lastReload() : undefined
      if (reload) send(reader, 'reload', bytesOf(reload))
      sendInbox(reader)
    },
    [Symbol.dispose](): void {
      for (const { response } of readers) response.end()
      for (const reader of readers) left(reader)
    },
  }
}

/** Leaves out rates, which change with the time even if nothing happens. */
const withoutRates = (key: string, value: unknown): unknown => (key === 'perSecond' ? undefined : value)

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const tooManyReaders = (open: number) =>
  HttpError.of('OVERLOADED', `${open} dashboards are already open: close one, or try again later.`, {
    retryAfterMs: 5_000,
  })

import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { asRecord } from '../../lib/is-record.ts'
import type { OpenLine } from '../connection/handshake.ts'
import type { Line } from '../connection/managed-connection.ts'
import { phrase } from './encode-request.ts'

/** Who follows which resources of one server; counted, so that the server is asked once for all of them. */
export interface Subscriptions extends Disposable {
  subscribe(caller: Caller, uri: string, updated: () => void): Promise<AsyncDisposable>
  /** All that is followed, over whichever line. */
  uris(): string[]
  /** A resource has changed; for those who follow it over this line, where each line tells of its own. */
  updated(uri: string, line?: Line): void
  /** A line is open again: whatever was followed over it is followed anew. */
  reopened(line: Line, open: OpenLine): void
  /** A line went down; if something is followed over it, it is opened again without waiting for a call. */
  lost(line: Line): void
}

export interface SubscriptionsOptions {
  readonly server: string
  lineOf(caller: Caller): Line
  /** Tells a server of the stateless era, which wants to hear all of it at once, that something has changed. */
  changed(): void
  readonly clock: Clock
  readonly log: Log
}

interface Followed {
  readonly line: Line
  readonly hold: Disposable
  readonly listeners: Set<() => void>
  asked: Promise<void>
  /** Whether the server has been asked at all: what it has never heard of need not be repeated. */
  told: boolean
}

const askWithinMs = 10_000
const firstPauseMs = 1_000
const maxPauseMs = 30_000
const never = new AbortController().signal

export function createSubscriptions(options: SubscriptionsOptions): Subscriptions {
  const { server, clock, log } = options
  const followed = new Map<Line, Map<string, Followed>>()
  const timers = new Map<Line, Disposable>()

  /** Until it is open again, or nothing is followed over it any more; ever less often. */
  const reopenAfter = (line: Line, pauseMs: number): void => {
    const reopen = () => {
      timers.delete(line)
      if (!followed.has(line) || line.current || line.ended) return
      line.reopen().catch(() => reopenAfter(line, Math.min(pauseMs * 2, maxPauseMs)))
    }
    timers.get(line)?.[Symbol.dispose]()
    timers.set(line, clock.after(pauseMs, reopen))
  }

  const on = (line: Line): Map<string, Followed> => {
    const known = followed.get(line) ?? new Map<string, Followed>()
    followed.set(line, known)
    return known
  }

  const tell = async (open: OpenLine, method: string, uri: string): Promise<void> => {
    if (open.introduction.era === 'modern') return options.changed()
    using limit = deadline(clock, askWithinMs, () => tooSlow(server, method))
    const members = [Buffer.from(`"uri":${JSON.stringify(uri)}`)]
    await open.connection.request(phrase(open, { method, members, capabilities: {}, signal: limit.signal }))
  }

  const release = async (line: Line, uri: string, updated: () => void): Promise<void> => {
    const entry = followed.get(line)?.get(uri)
    if (!entry?.listeners.delete(updated) || entry.listeners.size > 0) return
    on(line).delete(uri)
    if (on(line).size === 0) followed.delete(line)
    entry.hold[Symbol.dispose]()
    if (line.current) await tell(line.current, 'resources/unsubscribe', uri).catch(() => {})
  }

  return {
    async subscribe(caller, uri, given) {
      // Each subscription is one listener of its own, even where the same function is given twice.
      const updated = () => given()
      const line = options.lineOf(caller)
      const lines = on(line)
      const entry: Followed = lines.get(uri) ?? {
        line,
        hold: line.hold(),
        listeners: new Set(),
        told: false,
        asked: line.open(never).then((open) => {
          entry.told = true
          return tell(open, 'resources/subscribe', uri)
        }),
      }
      entry.listeners.add(updated)
      lines.set(uri, entry)
      try {
        await entry.asked
      } catch (error) {
        await release(line, uri, updated)
        throw error
      }
      return { [Symbol.asyncDispose]: () => release(line, uri, updated) }
    },
    uris: () => [...new Set([...followed.values()].flatMap((uris) => [...uris.keys()]))],
    updated(uri, line) {
      const concerned = line ? [followed.get(line)] : [...followed.values()]
      for (const uris of concerned) for (const listener of uris?.get(uri)?.listeners ?? []) listener()
    },
    reopened(line, open) {
      for (const [uri, entry] of followed.get(line) ?? []) {
        if (!entry.told) continue
        entry.asked = tell(open, 'resources/subscribe', uri)
        entry.asked.catch((error) => log.warn({ server, uri, err: error }, 'could not follow a resource again'))
      }
    },
    lost(line) {
      if (followed.has(line)) reopenAfter(line, firstPauseMs)
    },
    [Symbol.dispose]() {
      followed.clear()
      for (const timer of timers.values()) timer[Symbol.dispose]()
    },
  }
}

const tooSlow = (server: string, method: string) =>
  new ToolwayError(
    'TIMEOUT',
    `${server} did not answer ${method} within ${askWithinMs / 1000} s, which is a fixed limit.`,
    { server },
  )

/** A server of the stateless era tells of changes only where somebody listens: this does, once for everybody. */
export interface Listening extends Disposable {
  /** Listens for the lists that the server says may change, and for these resources, from now on. */
  listen(uris: readonly string[]): void
}

interface ListeningOptions {
  readonly server: string
  heard(method: string, params: Buffer | undefined): void
  /** Something may have changed while nobody listened. */
  missed(): void
  readonly clock: Clock
  readonly log: Log
}

const methodNotFound = -32601

export function createListening(open: OpenLine, options: ListeningOptions): Listening {
  const { server, missed, clock, log } = options
  const lists = listsOf(open)
  let uris: readonly string[] = []
  let current: AbortController | undefined
  let timer: Disposable | undefined
  let over = false
  let pauseMs = firstPauseMs

  const heard = (method: string, params: Buffer | undefined) => {
    // It listens again, and whatever changed in between was not told.
    if (pauseMs > firstPauseMs && method === 'notifications/subscriptions/acknowledged') missed()
    pauseMs = firstPauseMs
    options.heard(method, params)
  }

  const start = () => {
    current?.abort(replaced)
    const filter = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) }
    if (over || Object.keys(filter).length === 0) return
    const controller = new AbortController()
    current = controller
    const members = [Buffer.from(`"notifications":${JSON.stringify(filter)}`)]
    const request = phrase(open, {
      method: 'subscriptions/listen',
      members,
      capabilities: {},
      heard,
      signal: controller.signal,
    })
    open.connection.request(request).then(
      () => later(controller),
      (error) => {
        if (controller.signal.aborted) return
        log.debug({ server, err: error }, 'stopped hearing of changes of a server')
        if (error instanceof ServerError && error.error.value.code === methodNotFound) return
        later(controller)
      },
    )
  }

  /** The server may end a stream whenever it likes; nothing is remembered, so all of it is asked for again. */
  const later = (ended: AbortController) => {
    if (over || ended !== current) return
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

const replaced = new Error('listening to something else now')

/** A server that says a list may change is believed; others are asked again from time to time. */
function listsOf({ introduction }: OpenLine): Record<string, true> {
  const changes = (name: string) => asRecord(introduction.capabilities[name]).listChanged === true
  return {
    ...(changes('tools') && { toolsListChanged: true as const }),
    ...(changes('prompts') && { promptsListChanged: true as const }),
    ...(changes('resources') && { resourcesListChanged: true as const }),
  }
}

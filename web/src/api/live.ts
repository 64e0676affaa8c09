import { batch, computed, effect, signal } from '@preact/signals'
import type {
  AdminEvents,
  ApprovalView,
  CallView,
  InboxView,
  Overview,
  ReloadEvent,
  ServerView,
} from '../../../src/admin/contract.ts'
import { mergeCalls } from './call-log.ts'
import { isAnswering, request } from './request.ts'
import { isAdmin, mustSignInAgain, refreshSession, userKey } from './session.ts'

export const streamState = signal<StreamState>('reconnecting')
/** When the event stream last reported something. */
export const heardAt = signal<number | undefined>(undefined)
/** Whether nothing of the gateway is left: neither events nor answers to requests. Nothing on the page is current then. */
export const gatewayGone = computed(() => streamState.value === 'offline' && !isAnswering.value)
/** The number of reconnects. Resources are reloaded after each reconnect, because events may have been missed. */
export const reconnections = signal(0)

export const liveOverview = signal<Overview | undefined>(undefined)
export const liveServers = signal<readonly ServerView[] | undefined>(undefined)
export const liveCalls = signal<readonly CallView[]>([])
/** Undefined until the event stream has reported them. */
export const liveApprovals = signal<readonly ApprovalView[] | undefined>(undefined)
export const liveReload = signal<ReloadEvent | undefined>(undefined)
/** What needs a person. Undefined for users who are not admins. */
export const liveInbox = signal<InboxView | undefined>(undefined)
/** How many items need a person, for the menu and the tab's title. */
export const inboxCount = computed(() => liveInbox.value && liveInbox.value.items.length + liveInbox.value.left)

/** Max number of calls that the browser keeps. */
const maxLiveCalls = 500

const eventHandlers: { readonly [Kind in keyof AdminEvents]: (value: AdminEvents[Kind]) => void } = {
  overview: (value) => {
    liveOverview.value = value
  },
  servers: (value) => {
    liveServers.value = value
  },
  calls: (value) => {
    liveCalls.value = mergeCalls(liveCalls.peek(), value, maxLiveCalls)
  },
  approvals: (value) => {
    liveApprovals.value = value
  },
  reload: (value) => {
    liveReload.value = value
  },
  inbox: (value) => {
    liveInbox.value = value
  },
}

/** Applies the server state that an action returned, before the event stream reports it. */
export function updateLiveServer(server: ServerView): void {
  liveServers.value = liveServers.peek()?.map((one) => (one.name === server.name ? server : one))
}

/** Removes an approval that was answered, before the event stream reports it. */
export function removeLiveApproval(id: string): void {
  const inbox = liveInbox.peek()
  batch(() => {
    liveApprovals.value = liveApprovals.peek()?.filter((one) => one.id !== id)
    if (inbox) liveInbox.value = { ...inbox, items: inbox.items.filter((item) => item.id !== `approval:${id}`) }
  })
}

/** Forgets everything that the event stream has reported: the next user may not see it. */
function clearLive(): void {
  batch(() => {
    streamState.value = 'reconnecting'
    liveOverview.value = undefined
    liveServers.value = undefined
    liveCalls.value = []
    liveApprovals.value = undefined
    liveReload.value = undefined
    liveInbox.value = undefined
  })
}

/**
 * Keeps an event stream open for the current user, until the returned function is called. When the user changes or signs
 * out, the stream is closed and its data cleared before anything renders.
 */
export const followLive = (): (() => void) =>
  effect(() => {
    if (userKey.value === undefined) return
    const stream = new LiveStream()
    return () => stream.close()
  })

/**
 * An event stream that reconnects when it breaks. Tabs that stay hidden close it: browsers open at most six HTTP/1.1
 * connections to a host, for all tabs together.
 */
class LiveStream {
  readonly #closed = new AbortController()
  #source: EventSource | undefined
  #failures = 0
  #wasLive = false
  #paused = false
  #hideTimer: ReturnType<typeof setTimeout> | undefined
  #inboxTimer: ReturnType<typeof setInterval> | undefined
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined
  #silenceTimer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    const { signal } = this.#closed
    window.addEventListener('online', () => this.#retryNow(), { signal })
    document.addEventListener('visibilitychange', () => this.#onVisibilityChange(), { signal })
    if (document.hidden) this.#pause()
    else this.#open()
  }

  close(): void {
    this.#closed.abort()
    this.#disconnect()
    this.#paused = false
    clearTimeout(this.#hideTimer)
    clearInterval(this.#inboxTimer)
    clearLive()
  }

  #open(): void {
    // Without a session every request would be refused, and recorded as an attempt.
    if (mustSignInAgain.peek()) {
      this.#reconnectTimer = setTimeout(() => this.#open(), signedOutMs)
      return
    }
    this.#awaitEvent()
    this.#source = new EventSource('/admin/api/events')
    this.#source.addEventListener('error', () => this.#onFailure())
    this.#source.addEventListener('open', () => this.#onAlive())
    for (const [kind, listener] of Object.entries(eventHandlers)) {
      this.#source.addEventListener(kind, (event: MessageEvent<string>) => {
        this.#onAlive()
        listener(JSON.parse(event.data) as never)
      })
    }
  }

  #disconnect(): void {
    this.#source?.close()
    clearTimeout(this.#silenceTimer)
    clearTimeout(this.#reconnectTimer)
  }

  #retryNow(): void {
    if (this.#paused || streamState.peek() === 'live') return
    this.#disconnect()
    this.#open()
  }

  #awaitEvent(): void {
    clearTimeout(this.#silenceTimer)
    this.#silenceTimer = setTimeout(() => this.#onSilence(), maxSilenceMs)
  }

  #onAlive(): void {
    this.#awaitEvent()
    heardAt.value = Date.now()
    if (streamState.peek() === 'live') return
    batch(() => {
      streamState.value = 'live'
      // Calls that still run are reported again; the others may have ended, or the gateway was restarted.
      liveCalls.value = liveCalls.peek().filter(({ outcome }) => outcome !== 'running')
      if (this.#wasLive) reconnections.value++
    })
    this.#failures = 0
    this.#wasLive = true
  }

  #onSilence(): void {
    isAnswering.value = false
    this.#failures = Math.max(this.#failures, maxFailures - 1)
    this.#onFailure()
  }

  #onFailure(): void {
    this.#disconnect()
    this.#failures++
    streamState.value = streamStateAfter(this.#failures, navigator.onLine)
    this.#reconnectTimer = setTimeout(() => this.#open(), reconnectDelay(this.#failures))
    // EventSource does not report the HTTP status, so check whether the session has ended, or the gateway is gone.
    if (this.#failures >= 2) void refreshSession()
  }

  #onVisibilityChange(): void {
    clearTimeout(this.#hideTimer)
    if (!document.hidden) this.#resume()
    else if (!this.#paused) this.#hideTimer = setTimeout(() => this.#pause(), hiddenDelayMs)
  }

  #pause(): void {
    this.#disconnect()
    this.#paused = true
    // Resources that were loaded before are reloaded, also if the stream is opened for the first time.
    this.#wasLive = true
    streamState.value = 'reconnecting'
    if (!isAdmin.peek()) return
    void this.#pollInbox()
    this.#inboxTimer = setInterval(() => this.#pollInbox(), hiddenPollMs)
  }

  #resume(): void {
    clearInterval(this.#inboxTimer)
    if (!this.#paused) return
    this.#paused = false
    this.#failures = 0
    this.#open()
  }

  /** The title and notifications of a hidden tab need the inbox. */
  async #pollInbox(): Promise<void> {
    if (mustSignInAgain.peek()) return
    const inbox = await request<InboxView>('inbox').catch(() => undefined)
    if (this.#paused && inbox) liveInbox.value = inbox
  }
}

export type StreamState = 'live' | 'reconnecting' | 'offline'

export const reconnectDelay = (failures: number): number => Math.min(15_000, 500 * 2 ** Math.max(0, failures - 1))

const maxFailures = 3

/**
 * The state of the stream after a number of failures. After three failures in a row it is `offline`, which tells the
 * user that the data is stale.
 */
export const streamStateAfter = (failures: number, networkUp: boolean): StreamState => {
  if (!networkUp || failures >= maxFailures) return 'offline'
  return 'reconnecting'
}

/**
 * Max time without an event. The gateway sends one every second, so a connection that is silent for longer than this is
 * dead.
 */
const maxSilenceMs = 10_000

/** How long a tab is hidden before it closes the event stream. */
const hiddenDelayMs = 10_000

/** How often the stream checks whether the user has signed in again. */
const signedOutMs = 1_000

/** How often a hidden tab asks for the inbox. */
const hiddenPollMs = 20_000

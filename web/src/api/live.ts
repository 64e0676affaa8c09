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
export const followLive = (): (() => void) => effect(() => (userKey.value === undefined ? undefined : startLive()))

/**
 * Opens the event stream, and reconnects when it breaks, until the returned function is called. Tabs that stay hidden
 * close it: browsers open at most six HTTP/1.1 connections to a host, for all tabs together.
 */
function startLive(): () => void {
  let source: EventSource | undefined
  let failures = 0
  let wasLive = false
  let paused = false
  let hideTimer: ReturnType<typeof setTimeout> | undefined
  let inboxTimer: ReturnType<typeof setInterval> | undefined
  let reconnectTimer: ReturnType<typeof setTimeout> | undefined
  let silenceTimer: ReturnType<typeof setTimeout> | undefined

  const awaitEvent = () => {
    clearTimeout(silenceTimer)
    silenceTimer = setTimeout(onSilence, maxSilenceMs)
  }

  const onAlive = () => {
    awaitEvent()
    heardAt.value = Date.now()
    if (streamState.peek() === 'live') return
    batch(() => {
      streamState.value = 'live'
      // Calls that still run are reported again; the others may have ended, or the gateway was restarted.
      liveCalls.value = liveCalls.peek().filter(({ outcome }) => outcome !== 'running')
      if (wasLive) reconnections.value++
    })
    failures = 0
    wasLive = true
  }

  const disconnect = () => {
    source?.close()
    clearTimeout(silenceTimer)
    clearTimeout(reconnectTimer)
  }

  const onFailure = () => {
    disconnect()
    failures++
    streamState.value = streamStateAfter(failures, navigator.onLine)
    reconnectTimer = setTimeout(open, reconnectDelay(failures))
    // EventSource does not report the HTTP status, so check whether the session has ended, or the gateway is gone.
    if (failures >= 2) void refreshSession()
  }

  const onSilence = () => {
    isAnswering.value = false
    failures = Math.max(failures, maxFailures - 1)
    onFailure()
  }

  const open = () => {
    // Without a session every request would be refused, and recorded as an attempt.
    if (mustSignInAgain.peek()) {
      reconnectTimer = setTimeout(open, signedOutMs)
      return
    }
    awaitEvent()
    source = new EventSource('/admin/api/events')
    source.addEventListener('error', onFailure)
    source.addEventListener('open', onAlive)
    for (const [kind, listener] of Object.entries(eventHandlers)) {
      source.addEventListener(kind, (event: MessageEvent<string>) => {
        onAlive()
        listener(JSON.parse(event.data) as never)
      })
    }
  }

  const retryNow = () => {
    if (paused || streamState.peek() === 'live') return
    disconnect()
    open()
  }

  // The title and notifications of a hidden tab need the inbox.
  const pollInbox = async () => {
    if (mustSignInAgain.peek()) return
    const inbox = await request<InboxView>('inbox').catch(() => undefined)
    if (paused && inbox) liveInbox.value = inbox
  }

  const pause = () => {
    disconnect()
    paused = true
    // Resources that were loaded before are reloaded, also if the stream is opened for the first time.
    wasLive = true
    streamState.value = 'reconnecting'
    if (!isAdmin.peek()) return
    void pollInbox()
    inboxTimer = setInterval(pollInbox, hiddenPollMs)
  }

  const resume = () => {
    clearTimeout(hideTimer)
    clearInterval(inboxTimer)
    if (!paused) return
    paused = false
    failures = 0
    open()
  }

  const onVisibilityChange = () => {
    if (!document.hidden) return resume()
    clearTimeout(hideTimer)
    if (!paused) hideTimer = setTimeout(pause, hiddenDelayMs)
  }

  window.addEventListener('online', retryNow)
  document.addEventListener('visibilitychange', onVisibilityChange)
  if (document.hidden) pause()
  else open()
  return () => {
    window.removeEventListener('online', retryNow)
    document.removeEventListener('visibilitychange', onVisibilityChange)
    disconnect()
    paused = false
    clearTimeout(hideTimer)
    clearInterval(inboxTimer)
    clearLive()
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

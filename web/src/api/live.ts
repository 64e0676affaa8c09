import { batch, signal } from '@preact/signals'
import type { AdminEvents, CallView, Overview, ReloadEvent, ServerView } from '../../../src/serve/admin/contract.ts'
import { withCalls } from './call-log.ts'
import { findSession } from './session.ts'

export const streamState = signal<StreamState>('reconnecting')
/** Number of reconnects. Resources reload on each, because events were missed. */
export const reconnections = signal(0)

export const liveOverview = signal<Overview | undefined>(undefined)
export const liveServers = signal<readonly ServerView[] | undefined>(undefined)
export const liveCalls = signal<readonly CallView[]>([])
export const liveReload = signal<ReloadEvent | undefined>(undefined)

/** Number of calls that the browser keeps. */
export const keptCalls = 500

const heard: { readonly [Kind in keyof AdminEvents]: (value: AdminEvents[Kind]) => void } = {
  overview: (value) => {
    liveOverview.value = value
  },
  servers: (value) => {
    liveServers.value = value
  },
  calls: (value) => {
    liveCalls.value = withCalls(liveCalls.peek(), value, keptCalls)
  },
  reload: (value) => {
    liveReload.value = value
  },
}

/** Applies the state that an action returned, before the event stream reports it. */
export function heardOf(server: ServerView): void {
  liveServers.value = liveServers.peek()?.map((one) => (one.name === server.name ? server : one))
}

/** Opens the event stream and reconnects until the returned function is called. */
export function startLive(): () => void {
  let source: EventSource | undefined
  let failures = 0
  let wasLive = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let watch: ReturnType<typeof setTimeout> | undefined

  const arrived = () => {
    clearTimeout(watch)
    watch = setTimeout(failed, silenceLimit)
    if (streamState.peek() === 'live') return
    batch(() => {
      streamState.value = 'live'
      if (wasLive) reconnections.value++
    })
    failures = 0
    wasLive = true
  }

  const failed = () => {
    source?.close()
    clearTimeout(watch)
    clearTimeout(timer)
    failures++
    streamState.value = stateAfter(failures, navigator.onLine)
    timer = setTimeout(open, waitBefore(failures))
    // EventSource does not report the HTTP status; check whether the session has ended.
    if (failures === 2) void findSession()
  }

  const open = () => {
    source = new EventSource('/admin/api/events')
    source.addEventListener('error', failed)
    source.addEventListener('open', arrived)
    for (const [kind, listener] of Object.entries(heard)) {
      source.addEventListener(kind, (event: MessageEvent<string>) => {
        arrived()
        listener(JSON.parse(event.data) as never)
      })
    }
  }

  const retryNow = () => {
    if (streamState.peek() === 'live') return
    clearTimeout(timer)
    source?.close()
    open()
  }

  window.addEventListener('online', retryNow)
  open()
  return () => {
    window.removeEventListener('online', retryNow)
    clearTimeout(timer)
    clearTimeout(watch)
    source?.close()
    streamState.value = 'reconnecting'
  }
}

export type StreamState = 'live' | 'reconnecting' | 'offline'

export const waitBefore = (failures: number): number => Math.min(15_000, 500 * 2 ** Math.max(0, failures - 1))

/** After three failures in a row, tell the user that the data is stale. */
export const stateAfter = (failures: number, networkUp: boolean): StreamState => {
  if (!networkUp || failures >= 3) return 'offline'
  return 'reconnecting'
}

/** The server sends an event every second, so a connection that is silent for longer is dead. */
const silenceLimit = 10_000

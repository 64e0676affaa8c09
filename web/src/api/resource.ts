import { type Signal, signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { liveOverview, reconnections, streamState } from './live.ts'
import { type ApiError, asApiError } from './request.ts'
import { mustSignInAgain } from './session.ts'

/** Data from the API. While the data is being reloaded, and after a failure, the last data stays available. */
export interface Resource<T> {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
  reload(): void
}

interface Options<T> {
  /** The polling interval in milliseconds. Applies only while the page is visible. */
  readonly pollEveryMs?: number
  /** Loads again when this has changed, at most every second. Applies only while the page is visible. */
  readonly follow?: Signal<unknown>
  /** If true, polls every ten seconds while the event stream is down. */
  readonly pollWhenOffline?: boolean
  /** What the event stream updates, which is shown. While the stream is down, data that is loaded replaces it. */
  readonly live?: Signal<T | undefined>
}

/** Loads data on mount, when `key` changes, after the event stream reconnects, and on `reload`. */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  key: string,
  { pollEveryMs, pollWhenOffline, follow, live }: Options<T> = {},
): Resource<T> {
  const state = useSignal<Omit<Resource<T>, 'reload'>>({ data: undefined, error: undefined, loading: true })
  const reloadCount = useSignal(0)
  const reconnects = reconnections.value

  // The effect depends on `key` instead of `load`, because `load` is a new function on every render.
  useEffect(() => {
    const controller = new AbortController()
    state.value = { ...state.peek(), loading: true }
    load(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return
        state.value = { data, error: undefined, loading: false }
        if (live && streamState.peek() !== 'live') live.value = data
      },
      (thrown: unknown) => {
        if (controller.signal.aborted) return
        const error = asApiError(thrown)
        state.value = { ...state.peek(), error, loading: false }
      },
    )
    return () => controller.abort()
  }, [key, reloadCount.value, reconnects])

  const reload = () => {
    reloadCount.value++
  }
  const mayPoll = () => isVisible.peek() && !mustSignInAgain.peek() && !state.peek().loading
  const interval = pollEveryMs ?? (pollWhenOffline && streamState.value !== 'live' ? 10_000 : undefined)
  useEffect(() => {
    if (interval === undefined) return
    const timer = setInterval(() => {
      if (mayPoll()) reload()
    }, interval)
    return () => clearInterval(timer)
  }, [interval])
  useEffect(() => {
    let seen = follow?.peek()
    const timer = setInterval(() => {
      if (seen === follow?.peek() || !mayPoll()) return
      seen = follow?.peek()
      reload()
    }, 1_000)
    return () => clearInterval(timer)
  }, [follow])

  return { ...state.value, data: live?.value ?? state.value.data, reload }
}

/** Reloads when a value changes that is undefined until it is known. */
export function useReloadOnChange({ reload }: Pick<Resource<unknown>, 'reload'>, value: unknown): void {
  const previous = useRef(value)
  useEffect(() => {
    if (previous.current !== undefined && previous.current !== value) reload()
    previous.current = value
  }, [value])
}

/** Reloads a list of tools when the number of tools changes. */
export const useReloadOnToolChange = (tools: Pick<Resource<unknown>, 'reload'>): void =>
  useReloadOnChange(tools, liveOverview.value?.tools)

/** Whether the tab is visible. Hidden tabs do not poll. */
const isVisible = signal(!document.hidden)

document.addEventListener('visibilitychange', () => {
  isVisible.value = !document.hidden
})

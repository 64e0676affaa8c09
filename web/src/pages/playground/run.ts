import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { PlaygroundEvent, TryResult } from '../../../../src/admin/contract.ts'
import { type PlaygroundRequest, streamPlayground } from '../../api/playground.ts'
import { ApiError, asApiError } from '../../api/request.ts'

type EventOf<Kind extends PlaygroundEvent['kind']> = Extract<PlaygroundEvent, { kind: Kind }>

export interface PlaygroundRun {
  readonly state: 'running' | 'done' | 'cancelled'
  readonly startedAt: number
  readonly call: string | undefined
  readonly progress: readonly EventOf<'progress'>[]
  /** The server's requests that wait for an answer. */
  readonly asks: readonly EventOf<'ask'>[]
  readonly outcome: TryResult | ApiError | undefined
}

/** Max number of progress messages that are shown. */
const maxProgress = 100

const begin = (now: number): PlaygroundRun => ({
  ...{ state: 'running', startedAt: now, call: undefined, progress: [], asks: [], outcome: undefined },
})

/** The run after an event. */
export function afterEvent(run: PlaygroundRun, event: PlaygroundEvent): PlaygroundRun {
  switch (event.kind) {
    case 'start':
      return { ...run, call: event.call }
    case 'progress':
      return { ...run, progress: [...run.progress, event].slice(-maxProgress) }
    case 'ask':
      return { ...run, asks: [...run.asks, event] }
    case 'withdrawn':
      return { ...run, asks: run.asks.filter(({ id }) => id !== event.id) }
    case 'end':
      return { ...run, state: 'done', asks: [], outcome: event.outcome }
    case 'error':
      return { ...run, state: 'done', asks: [], outcome: new ApiError(0, event.code, event.message) }
  }
}

/** Runs operations, one at a time. Leaving the page cancels the current one. */
export function usePlayground() {
  const run = useSignal<PlaygroundRun | undefined>(undefined)
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const start = async (request: PlaygroundRequest): Promise<void> => {
    controller.current?.abort()
    const own = new AbortController()
    controller.current = own
    run.value = begin(Date.now())
    const update = (change: (before: PlaygroundRun) => PlaygroundRun) => {
      if (controller.current === own && run.peek()) run.value = change(run.peek() as PlaygroundRun)
    }
    try {
      await streamPlayground(request, own.signal, (event) => update((before) => afterEvent(before, event)))
    } catch (thrown) {
      update((before) => {
        if (own.signal.aborted) return { ...before, state: 'cancelled', asks: [] }
        const error = asApiError(thrown)
        return { ...before, state: 'done', asks: [], outcome: error }
      })
    }
  }
  return {
    run: run.value,
    start,
    cancel: () => controller.current?.abort(),
    /** Removes a request that was answered. */
    answered: (id: string) => {
      const current = run.peek()
      if (current) run.value = { ...current, asks: current.asks.filter((ask) => ask.id !== id) }
    },
  }
}

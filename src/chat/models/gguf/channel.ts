import { waitFor } from '../../../core/deadline.ts'

/** From somebody who tells to somebody who listens. What has not been listened to yet is kept. */
export interface Channel<Told> {
  push(told: Told): void
  /** Nothing more comes. */
  end(): void
  fail(thrown: unknown): void
  /** What is told, from the beginning; an aborted signal ends the listening at once. */
  read(signal: AbortSignal): AsyncGenerator<Told>
}

export function createChannel<Told>(): Channel<Told> {
  let kept: Told[] = []
  let ended: { readonly thrown?: unknown } | undefined
  let news = Promise.withResolvers<void>()

  const wake = () => {
    news.resolve()
    news = Promise.withResolvers()
  }

  return {
    push(told) {
      kept.push(told)
      wake()
    },
    end() {
      ended = {}
      wake()
    },
    fail(thrown) {
      ended = { thrown }
      wake()
    },
    async *read(signal) {
      for (;;) {
        const told = kept
        kept = []
        yield* told
        if (kept.length > 0) continue
        if (ended && 'thrown' in ended) throw ended.thrown
        if (ended) return
        await waitFor(news.promise, signal)
      }
    },
  }
}

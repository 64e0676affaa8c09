import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Budgets } from '../../core/limits/budgets.ts'
import type { Log } from '../../core/log.ts'
import { SseStream } from '../../serve/http/sse-stream.ts'
import type { PlaygroundEvent } from '../contract.ts'
import { failureEvent } from '../responses.ts'
import type { PlaygroundAdmin, PlaygroundInput } from '../service.ts'

export type PlaygroundStreams = ReturnType<typeof createPlaygroundStreams>

interface PlaygroundRequest {
  readonly caller: Caller
  readonly given: PlaygroundInput
  readonly signal: AbortSignal
  readonly response: ServerResponse
}

/** Streams the events of calls from the playground. Closing the stream cancels the call. */
export function createPlaygroundStreams(options: {
  readonly budgets: Pick<Budgets, 'streams'>
  readonly clock: Clock
  readonly log: Log
}) {
  const { budgets, clock, log } = options
  return {
    /** Rejects if the call cannot start; later failures are events, because the response has begun. */
    async run(admin: PlaygroundAdmin, { caller, given, signal, response }: PlaygroundRequest): Promise<void> {
      budgets.streams.claim(caller.principal)
      response.once('close', () => budgets.streams.give(caller.principal))
      let stream: SseStream | undefined
      const send = (event: PlaygroundEvent) => {
        if (response.destroyed) return
        stream ??= new SseStream(response, clock)
        stream.send(Buffer.from(JSON.stringify(event)))
      }
      try {
        await admin.playground(caller, given, { signal, send })
      } catch (thrown) {
        if (!stream) throw thrown
        send(failureEvent(thrown, log))
      }
      stream?.end()
    },
  }
}

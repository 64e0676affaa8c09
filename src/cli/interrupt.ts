import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'

export interface Interrupt {
  /** Aborted by the first signal: commands stop what they do and clean up. */
  readonly signal: AbortSignal
  /** Ends the work without a signal from outside. */
  stop(): void
  /** To be told of each SIGINT and SIGTERM. */
  receive(): void
}

/** npm passes on the Ctrl+C that the terminal has already sent to us: one press arrives twice. */
const echoMs = 400

/** The first signal asks the command to stop; one more, and `leave` ends the process without waiting for it. */
export function createInterrupt({ clock, leave }: { clock: Clock; leave: () => void }): Interrupt {
  const controller = new AbortController()
  let first: number | undefined
  const stop = () => controller.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
  return {
    signal: controller.signal,
    stop,
    receive() {
      if (first !== undefined && clock.monotonic() - first > echoMs) return leave()
      first ??= clock.monotonic()
      stop()
    },
  }
}

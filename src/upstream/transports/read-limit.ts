import type { Clock } from '../../core/clock.ts'
import { countValues } from '../../lib/json-text.ts'

/**
 * Limits how much unrequested data is read from a server: notifications, and output outside the protocol. A server that
 * sends more has to wait, so that it does not delay calls to other servers.
 */
export interface ReadLimit {
  message(bytes: Buffer): void
  /** A line that is not a message, or a piece of one. */
  line(bytes: { readonly length: number }): void
  /** Bytes that cost nothing but reading them. */
  bytes(count: number): void
  /** Ends the limit: no more is coming. */
  end(): void
}

export const maxPerSecond = 16 * 1024 * 1024
/** What handling costs beyond the bytes, expressed in bytes: about 8,000 short messages or 64,000 short lines per second. */
const messageCost = 2 * 1024
const lineCost = 256
/** For messages with many values, which cost more to parse than their bytes: about 260,000 values per second. */
const valueCost = 64

/** Stops reading a source for the rest of a second in which too much has come from it. `exceeded` is called once. */
export function createReadLimit(
  source: { pause(): void; resume(): void },
  clock: Clock,
  exceeded: () => void = () => {},
): ReadLimit {
  let second = 0
  let read = 0
  let paused: Disposable | undefined
  let over = false
  let reported = false

  const resume = (): void => {
    paused?.[Symbol.dispose]()
    paused = undefined
    source.resume()
  }

  const add = (cost: number): void => {
    const now = clock.monotonic()
    if (second !== Math.floor(now / 1000)) {
      second = Math.floor(now / 1000)
      read = 0
    }
    read += cost
    if (read <= maxPerSecond || paused || over) return
    source.pause()
    if (!reported) exceeded()
    reported = true
    paused = clock.after(1000 - (now % 1000), resume, { promptly: true })
  }

  return {
    message: (bytes) =>
      add(Math.max(bytes.length + messageCost, valueCost * countValues(bytes, maxPerSecond / valueCost))),
    line: ({ length }) => add(length + lineCost),
    bytes: add,
    end() {
      over = true
      if (paused) resume()
    },
  }
}

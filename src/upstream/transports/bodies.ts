import type { Clock } from '../../core/clock.ts'
import { type Growing, growing } from '../../wire/growing.ts'
import type { Body, Head } from './channel.ts'

/** The most that is read of an answer whose content nobody needs, and how long its end is waited for. */
const maxIgnored = 64 * 1024
const ignoredMs = 10_000

/** Reads an answer to its end and forgets it, so that the connection can be used again. */
export function ignored(head: Head, clock: Clock): Body {
  let length = 0
  const limit = clock.after(ignoredMs, head.abort)
  const over = () => limit[Symbol.dispose]()
  return {
    data(chunk) {
      length += chunk.length
      if (length > maxIgnored) head.abort()
    },
    end: over,
    lost: over,
  }
}

const nothing = Buffer.alloc(0)

/** Reads an answer whole. `tooLong` is told at most once and instead of the other two. */
export function whole(
  head: Head,
  options: { readonly maxLength: number; done(bytes: Buffer): void; lost(error: Error): void; tooLong(): void },
): Body {
  // Most answers come in one piece, which then need not be copied.
  let only: Buffer | undefined
  let gathered: Growing | undefined
  let dropped = false
  return {
    whole: options.maxLength,
    data(chunk) {
      if (dropped) return
      if ((gathered?.length ?? only?.length ?? 0) + chunk.length > options.maxLength) {
        dropped = true
        only = undefined
        gathered = undefined
        head.abort()
        options.tooLong()
      } else if (gathered) gathered.append(chunk)
      else if (only === undefined) only = chunk
      else {
        gathered = growing()
        gathered.append(only)
        gathered.append(chunk)
      }
    },
    end() {
      if (!dropped) options.done(gathered?.take() ?? only ?? nothing)
    },
    lost(error) {
      if (!dropped) options.lost(error)
    },
  }
}

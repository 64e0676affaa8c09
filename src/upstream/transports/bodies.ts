import { growing } from '../../wire/growing.ts'
import type { Body, Head } from './channel.ts'

/** The most that is read of an answer whose content nobody needs. */
const maxIgnored = 64 * 1024

/** Reads an answer to its end and forgets it, so that the connection can be used again. */
export function ignored(head: Head): Body {
  let length = 0
  return {
    data(chunk) {
      length += chunk.length
      if (length > maxIgnored) head.abort()
    },
    end() {},
    lost() {},
  }
}

/** Reads an answer whole. `tooLong` is told at most once and instead of the other two. */
export function whole(
  head: Head,
  options: { readonly maxLength: number; done(bytes: Buffer): void; lost(error: Error): void; tooLong(): void },
): Body {
  const gathered = growing()
  let only: Buffer | undefined
  let dropped = false
  return {
    data(chunk) {
      if (dropped) return
      if ((only?.length ?? gathered.length) + chunk.length > options.maxLength) {
        dropped = true
        only = undefined
        gathered.take()
        head.abort()
        options.tooLong()
      } else if (only === undefined && gathered.length === 0) only = chunk
      else {
        // Most answers come in one piece, which then need not be copied.
        if (only !== undefined) gathered.append(only)
        only = undefined
        gathered.append(chunk)
      }
    },
    end() {
      if (!dropped) options.done(only ?? gathered.take())
    },
    lost(error) {
      if (!dropped) options.lost(error)
    },
  }
}

import { createByteCollector } from './bytes.ts'

export interface LineReader {
  push(chunk: Buffer): void
  /** Delivers the last line if it had no line end. */
  end(): void
}

const LINE_FEED = 0x0a
const RETURN = 0x0d

/**
 * Splits a stream into lines without their LF or CRLF, including empty ones. A line within one chunk is a slice of it.
 * A line longer than `maxLength` is dropped and reported once, as soon as that is clear.
 */
export function createLineReader(options: {
  readonly maxLength: number
  /** Skips empty lines: a sender could produce millions of them. */
  readonly skipsEmpty?: boolean
  line(bytes: Buffer): void
  tooLong(length: number): void
}): LineReader {
  const { maxLength, skipsEmpty = false } = options
  const begun = createByteCollector()
  let dropping = false

  const drop = (length: number): void => {
    begun.take()
    dropping = true
    options.tooLong(length)
  }

  const finish = (rest: Buffer): void => {
    if (dropping) {
      dropping = false
      return
    }
    const length = begun.length + rest.length
    if (length > maxLength) {
      begun.take()
      options.tooLong(length)
      return
    }
    let line = rest
    if (begun.length > 0) {
      begun.append(rest)
      line = begun.take()
    }
    options.line(line[line.length - 1] === RETURN ? line.subarray(0, -1) : line)
  }

  return {
    push(chunk) {
      let from = 0
      for (;;) {
        if (skipsEmpty && begun.length === 0 && !dropping) while (chunk[from] === LINE_FEED) from++
        const at = chunk.indexOf(LINE_FEED, from)
        if (at < 0) break
        const rest = chunk.subarray(from, at)
        from = at + 1
        finish(rest)
      }
      if (from === chunk.length || dropping) return
      const length = begun.length + chunk.length - from
      if (length > maxLength) drop(length)
      else begun.append(chunk.subarray(from))
    },
    end() {
      if (begun.length > 0 || dropping) finish(Buffer.alloc(0))
    },
  }
}

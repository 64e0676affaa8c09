import type { Readable, Writable } from 'node:stream'
import { toOneLine } from '../wire/bytes.ts'
import { maxUnread } from './http/sse-stream.ts'

/** Writes one message per line. */
export interface LineWriter {
  /** Writes an answer. While the reader is behind, nothing more is read of what it asks for. */
  write(message: Buffer): void
  /** Writes what may be lost (progress, news of lists), unless the reader is far behind; tells whether it did. */
  offer(message: Buffer): boolean
  /** Settles when the reader is gone. */
  readonly closed: Promise<void>
  /** Settles when everything written so far is out. */
  flushed(): Promise<void>
}

const lineEnd = Buffer.from('\n')

export function createLineWriter(output: Writable, input: Readable): LineWriter {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let open = true
  const gone = () => {
    open = false
    resolve()
  }
  // A reader that closes its end shows as EPIPE; nobody is left to tell.
  output.on('error', gone).on('close', gone)
  output.on('drain', () => input.resume())

  const write = (message: Buffer) => {
    if (open && !output.write(Buffer.concat([toOneLine(message), lineEnd]))) input.pause()
  }

  return {
    write,
    offer(message) {
      if (!open || output.writableLength > maxUnread) return false
      write(message)
      return true
    },
    closed,
    flushed: () =>
      new Promise((resolve) => {
        if (!open || output.writableLength === 0) resolve()
        else output.write('', () => resolve())
      }),
  }
}

import type { Readable, Writable } from 'node:stream'
import { toOneLine } from '../wire/bytes.ts'
import { maxUnread } from './http/sse-stream.ts'

export interface LineWriter {
  /** Writes a response, and pauses the input while the reader is behind. */
  write(message: Buffer): void
  /** Writes a message that may be lost; returns false if the reader is too far behind. */
  offer(message: Buffer): boolean
  /** Resolves when the reader has closed the stream. */
  readonly closed: Promise<void>
  /** Resolves when everything written so far is flushed. */
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
  // EPIPE means that the reader has closed its end.
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

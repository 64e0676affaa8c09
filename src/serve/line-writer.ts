import type { Readable, Writable } from 'node:stream'
import { toOneLine } from '../wire/bytes.ts'
import { maxUnread } from './http/sse-stream.ts'

export type LineWriter = ReturnType<typeof createLineWriter>

const lineEnd = Buffer.from('\n')

export function createLineWriter(output: Writable, input: Readable) {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let open = true
  const gone = () => {
    open = false
    resolve()
  }
  // An error such as EPIPE means that the reader has closed its end.
  output.on('error', gone).on('close', gone)
  output.on('drain', () => input.resume())

  /** Writes a response. Pauses the input while the reader is behind. */
  const write = (message: Buffer) => {
    if (open && !output.write(Buffer.concat([toOneLine(message), lineEnd]))) input.pause()
  }

  return {
    write,
    /** Writes a message that may be lost. Returns false, without writing, if the reader is too far behind. */
    offer(message: Buffer): boolean {
      if (!open || output.writableLength > maxUnread) return false
      write(message)
      return true
    },
    /** Resolves when the reader has closed the stream. */
    closed,
    /** Resolves when everything written so far is flushed. */
    flushed: () =>
      new Promise<void>((resolve) => {
        if (!open || output.writableLength === 0) resolve()
        else output.write('', () => resolve())
      }),
  }
}

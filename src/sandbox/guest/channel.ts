import { createFrameReader, encodeFrame, type Frame } from './protocol.ts'

export interface HostChannel {
  /** Sends synchronously, even while the program keeps the thread busy. */
  send(kind: number, id: number, payload?: string | Uint8Array): void
}

/** The argument that tells a child that it is a thread. */
export const threadArgument = 'thread'

const readBytes = 64 * 1024

/** Worker messages in a thread. */
export function openThreadChannel(receive: (frame: Frame) => void): HostChannel {
  const port = process.getBuiltinModule('node:worker_threads').parentPort
  port?.on('message', ({ kind, id, payload }: Frame) => receive({ kind, id, payload: Buffer.from(payload) }))
  return {
    send: (kind, id, payload = '') =>
      port?.postMessage({ kind, id, payload: typeof payload === 'string' ? Buffer.from(payload) : payload }),
  }
}

/**
 * Frames on stdin and stdout in a process. Reads the file instead of `process.stdin`, which loads Node's network modules:
 * they take as much CPU time as a third of starting Node.
 */
export function openProcessChannel(receive: (frame: Frame) => void): HostChannel {
  const { read, writeSync } = process.getBuiltinModule('node:fs')
  const reader = createFrameReader({
    limit: () => Number.POSITIVE_INFINITY,
    frame: receive,
    broken: () => process.exit(1),
  })
  const bytes = Buffer.allocUnsafe(readBytes)
  const readOn = () =>
    read(0, bytes, 0, readBytes, null, (error, count) => {
      // Exit when the host has exited or closed the channel.
      if (error || count === 0) process.exit(0)
      reader.push(bytes.subarray(0, count))
      readOn()
    })
  readOn()
  return {
    send(kind, id, payload) {
      const frame = encodeFrame(kind, id, payload)
      for (let at = 0; at < frame.length; ) at += writeSync(1, frame, at)
    },
  }
}

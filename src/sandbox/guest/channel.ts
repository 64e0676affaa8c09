import { writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { createFrameReader, encodeFrame, type Frame } from './frames.ts'

/** The child's end of the line to its host. */
export interface Channel {
  /** Returns when the message is on its way, also while the program keeps the thread busy. */
  send(kind: number, id: number, payload?: string | Uint8Array): void
}

/** Opens the line: messages between threads in a worker, frames on stdin and stdout in a process. */
export function openChannel(receive: (frame: Frame) => void): Channel {
  const port = parentPort
  if (port) {
    port.on('message', ({ kind, id, payload }: Frame) => receive({ kind, id, payload: Buffer.from(payload) }))
    return {
      send: (kind, id, payload = '') =>
        port.postMessage({ kind, id, payload: typeof payload === 'string' ? Buffer.from(payload) : payload }),
    }
  }
  const reader = createFrameReader({
    limit: () => Number.POSITIVE_INFINITY,
    frame: receive,
    broken: () => process.exit(1),
  })
  process.stdin.on('data', reader.push)
  // Nobody is left to answer to.
  process.stdin.on('end', () => process.exit(0))
  return {
    send(kind, id, payload) {
      const frame = encodeFrame(kind, id, payload)
      for (let at = 0; at < frame.length; ) at += writeSync(1, frame, at)
    },
  }
}

import { writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'

/** What a host and a child say to one another; nothing else crosses the border. */
export const messageKinds = {
  /** From the child: it can be given a program. */
  ready: 1,
  /** From the child: the name of a host function, a line feed, its input. */
  call: 2,
  /** From the child: what the program printed. */
  log: 3,
  /** From the child: the result as JSON text. */
  value: 4,
  /** From the child: a `Verdict`. */
  done: 5,
  /** Both ways: all that an environment remembers. */
  memory: 6,
  /** To the child: a `Task`. */
  run: 7,
  /** To the child: what the host function with this number gave. */
  answer: 8,
  /** To the child: why it gave nothing, a `Refusal`. */
  refusal: 9,
} as const

export interface ProgramTask {
  readonly code: string
  readonly language: string
  readonly prelude: string
  /** Whether the child sends, or keeps, what the environment remembers. */
  readonly keep: boolean
  readonly cpuMs: number
  readonly logBytes: number
  readonly valueBytes: number
  /** How many calls of host functions there may be, and how large one. */
  readonly calls: number
  readonly callBytes: number
}

export interface HostCallError {
  readonly code: string
  readonly message: string
}

export interface ProgramError {
  readonly name: string
  readonly message: string
  readonly line?: number
  readonly column?: number
  readonly code?: string
}

/** How a program ended, as its child tells it. */
export interface ProgramResult {
  readonly status: 'ok' | 'error' | 'timeout' | 'out_of_memory'
  readonly error?: ProgramError
  readonly truncated: readonly string[]
  /** The child can no longer be relied on, and what the environment remembered is lost. */
  readonly broken?: boolean
}

export interface Frame {
  readonly kind: number
  readonly id: number
  readonly payload: Buffer
}

/** Kind, number and length. */
const headerLength = 9

export function encodeFrame(kind: number, id: number, payload: string | Uint8Array = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  const frame = Buffer.allocUnsafe(headerLength + bytes.length)
  frame.writeUInt8(kind, 0)
  frame.writeUInt32BE(id, 1)
  frame.writeUInt32BE(bytes.length, 5)
  frame.set(bytes, headerLength)
  return frame
}

export interface FrameReader {
  push(chunk: Buffer): void
}

/** Cuts a stream into frames. The other side is not trusted: what is too long or unknown ends the reading, once. */
export function createFrameReader(options: {
  /** The longest payload of a kind; undefined for a kind that has no business here. */
  limit(kind: number): number | undefined
  frame(frame: Frame): void
  broken(reason: string): void
}): FrameReader {
  const header = Buffer.alloc(headerLength)
  let have = 0
  let payload: Buffer | undefined
  let filled = 0
  let broken = false

  const begin = () => {
    const kind = header.readUInt8(0)
    const length = header.readUInt32BE(5)
    const limit = options.limit(kind)
    if (limit !== undefined && length <= limit) {
      payload = Buffer.allocUnsafe(length)
      filled = 0
      return
    }
    broken = true
    options.broken(limit === undefined ? `a message of kind ${kind}` : `a message of ${length} bytes`)
  }

  return {
    push(chunk) {
      let at = 0
      while (!broken && (at < chunk.length || payload?.length === 0)) {
        if (!payload) {
          const taken = chunk.copy(header, have, at)
          have += taken
          at += taken
          if (have === headerLength) begin()
          continue
        }
        const taken = chunk.copy(payload, filled, at)
        filled += taken
        at += taken
        if (filled < payload.length) continue
        const frame = { kind: header.readUInt8(0), id: header.readUInt32BE(1), payload }
        payload = undefined
        have = 0
        options.frame(frame)
      }
    },
  }
}

/** The child's end of the line to its host. */
export interface HostChannel {
  /** Returns when the message is on its way, also while the program keeps the thread busy. */
  send(kind: number, id: number, payload?: string | Uint8Array): void
}

/** Opens the line: messages between threads in a worker, frames on stdin and stdout in a process. */
export function openHostChannel(receive: (frame: Frame) => void): HostChannel {
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

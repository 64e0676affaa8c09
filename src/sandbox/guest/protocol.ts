import type { ProgramError } from '../../core/executor.ts'

/** Messages between host and child. */
export const messageKinds = {
  /** From the child: ready for a program. */
  ready: 1,
  /** From the child: the name of a host function, a line feed and the input. */
  call: 2,
  /** From the child: the program's output. */
  log: 3,
  /** From the child: the result as JSON. */
  value: 4,
  /** From the child: a `ProgramResult`. */
  done: 5,
  /** In both directions: the state of an environment. */
  memory: 6,
  /** To the child: a `ProgramTask`. */
  run: 7,
  /** To the child: the result of a host function. */
  answer: 8,
  /** To the child: the error from a host function, as a `HostCallError`. */
  refusal: 9,
} as const

export interface ProgramTask {
  readonly code: string
  readonly language: string
  readonly prelude: string
  /** Whether the environment's state is kept after the run. */
  readonly keep: boolean
  readonly cpuMs: number
  readonly logBytes: number
  /** How much output may be dropped after the first `logBytes` before the program is stopped. */
  readonly droppedLogBytes: number
  readonly valueBytes: number
  /** Maximum number of host calls, and maximum size of each. */
  readonly calls: number
  readonly callBytes: number
}

export interface HostCallError {
  readonly code: string
  readonly message: string
}

/** The program's result as reported by the child. */
export interface ProgramResult {
  readonly status: 'ok' | 'error' | 'timeout' | 'out_of_memory'
  readonly error?: ProgramError
  readonly truncated: readonly string[]
  /** Whether the child is unusable, so that the environment's state is lost. */
  readonly broken?: boolean
}

export interface Frame {
  readonly kind: number
  readonly id: number
  readonly payload: Buffer
}

/** Length of a frame's header: kind, id and payload length. */
const frameHeaderLength = 9

export function encodeFrame(kind: number, id: number, payload: string | Uint8Array = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  const frame = Buffer.allocUnsafe(frameHeaderLength + bytes.length)
  frame.writeUInt8(kind, 0)
  frame.writeUInt32BE(id, 1)
  frame.writeUInt32BE(bytes.length, 5)
  frame.set(bytes, frameHeaderLength)
  return frame
}

/** Splits a stream into frames. The peer is untrusted: after an unknown or oversized frame, nothing more is read. */
export function createFrameReader(options: {
  /** Maximum payload size for each kind; undefined for unexpected kinds. */
  limit(kind: number): number | undefined
  frame(frame: Frame): void
  broken(reason: string): void
}) {
  const header = Buffer.alloc(frameHeaderLength)
  /** The header, or the payload that follows it. */
  let part = header
  let filled = 0
  let broken = false

  const begin = () => {
    const kind = header.readUInt8(0)
    const length = header.readUInt32BE(5)
    const limit = options.limit(kind)
    if (limit !== undefined && length <= limit) {
      part = Buffer.allocUnsafe(length)
      return
    }
    broken = true
    options.broken(limit === undefined ? `a message of kind ${kind}` : `a message of ${length} bytes`)
  }

  return {
    push(chunk: Buffer): void {
      let at = 0
      while (!broken && (at < chunk.length || part.length === 0)) {
        const taken = chunk.copy(part, filled, at)
        filled += taken
        at += taken
        if (filled < part.length) return
        filled = 0
        if (part === header) begin()
        else {
          const frame = { kind: header.readUInt8(0), id: header.readUInt32BE(1), payload: part }
          part = header
          options.frame(frame)
        }
      }
    },
  }
}

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

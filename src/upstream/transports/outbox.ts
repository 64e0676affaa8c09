import type { Writable } from 'node:stream'

/**
 * Queue of messages for a pipe. Messages of one event loop turn leave in one write while that is small enough to be
 * atomic. So a failed write tells exactly which messages cannot have been read: their line ends never left.
 */
export interface Outbox {
  /** Bytes that the other side has not read yet. */
  readonly waiting: number
  /** Resolves when the pipe has accepted the whole line; a message cancelled in the queue is never written. */
  send(body: Buffer, signal?: AbortSignal): Promise<void>
  /** Rejects queued and future messages. */
  close(): void
}

interface QueuedMessage {
  readonly body: Buffer
  readonly signal: AbortSignal | undefined
  resolve(): void
  reject(reason: unknown): void
}

const LINE_FEED = 0x0a
const lineFeed = Buffer.from([LINE_FEED])

/** POSIX guarantees that a write of this size to a pipe is atomic. */
const atomicBytes = 4096

/** `refuse` receives the reject function of a message that was certainly not read, and decides why and when. */
export function createOutbox(pipe: Writable, refuse: (reject: (reason: unknown) => void) => void): Outbox {
  /** Queued messages, with a cancel listener where the wait may be long. */
  const queue = new Map<QueuedMessage, (() => void) | undefined>()
  let queued = 0
  let scheduled = false
  let closed = false

  return {
    get waiting() {
      return queued + pipe.writableLength
    },
    send(body, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      if (closed) refuse(reject)
      else {
        wait({ body, signal, resolve, reject })
        writeSoon()
      }
      return promise
    },
    close,
  }

  function wait(letter: QueuedMessage): void {
    const long = pipe.writableLength > 0
    queue.set(letter, long ? calledOff : undefined)
    queued += letter.body.length
    if (long) letter.signal?.addEventListener('abort', calledOff, { once: true })

    function calledOff(): void {
      take(letter)
      letter.reject(letter.signal?.reason)
    }
  }

  function take(letter: QueuedMessage): void {
    const calledOff = queue.get(letter)
    if (calledOff) letter.signal?.removeEventListener('abort', calledOff)
    queue.delete(letter)
    queued -= letter.body.length
  }

  /** At the end of the turn, so that concurrent messages share a write. */
  function writeSoon(): void {
    if (scheduled || pipe.writableLength > 0) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      next()
    })
  }

  function next(): void {
    while (queue.size > 0 && pipe.writableLength === 0 && !closed) {
      const letters = bundle()
      if (letters.length > 0) write(letters)
    }
  }

  /** The first messages that fit into one atomic write. */
  function bundle(): QueuedMessage[] {
    const letters: QueuedMessage[] = []
    let bytes = 0
    for (const letter of queue.keys()) {
      const { body, signal, reject } = letter
      if (!signal?.aborted) {
        bytes += body.length + 1
        if (letters.length > 0 && bytes > atomicBytes) break
        letters.push(letter)
      } else reject(signal.reason)
      take(letter)
    }
    return letters
  }

  function write(letters: readonly QueuedMessage[]): void {
    const written = (error?: Error | null) => {
      if (error) {
        for (const { reject } of letters) refuse(reject)
        close()
      } else {
        resolve()
        next()
      }
    }
    const resolve = () => {
      for (const letter of letters) letter.resolve()
    }
    const [first] = letters as [QueuedMessage]
    if (first.body.length < atomicBytes) pipe.write(joined(letters), written)
    else {
      pipe.cork()
      pipe.write(first.body)
      pipe.write(lineFeed, written)
      pipe.uncork()
    }
    // Accepted at once: later errors of the pipe do not affect these messages.
    if (pipe.writableLength === 0 && !pipe.errored && !pipe.destroyed) resolve()
  }

  function close(): void {
    closed = true
    for (const letter of queue.keys()) {
      take(letter)
      refuse(letter.reject)
    }
  }
}

/** All lines with their line ends. */
function joined(letters: readonly QueuedMessage[]): Buffer {
  const bytes = letters.reduce((sum, { body }) => sum + body.length + 1, 0)
  const lines = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const { body } of letters) {
    lines.set(body, at)
    at += body.length
    lines[at++] = LINE_FEED
  }
  return lines
}

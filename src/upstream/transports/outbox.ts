import type { Writable } from 'node:stream'

/**
 * Messages on their way into a pipe. What is sent in one turn of the event loop leaves in one write, as long as that is
 * small enough to be taken whole or not at all: so a write that fails tells exactly which messages cannot have been
 * read, because their line ends never left.
 */
export interface Outbox {
  /** How many bytes the other side has not taken yet. */
  readonly waiting: number
  /** Resolves when the pipe has taken the whole line; one that is called off while it waits is never written. */
  send(body: Buffer, signal?: AbortSignal): Promise<void>
  /** Refuses what has not been begun, and whatever comes. */
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

/** POSIX promises that a pipe takes this much whole or not at all. */
const atomicBytes = 4096

/** `refuse` gets the way to reject a message that surely was not read, and says why and when. */
export function createOutbox(pipe: Writable, refuse: (reject: (reason: unknown) => void) => void): Outbox {
  /** What waits, and what ends the waiting where it may be long. */
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

  /** At the end of the turn, so that those who call at the same time share a write. */
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

  /** The first letters, as many as may leave together. */
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
    // Taken at once. What becomes of the pipe before the callback comes is no longer about these messages.
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

/** All lines, each with its end. */
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

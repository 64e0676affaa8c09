import type { Writable } from 'node:stream'

/**
 * Messages on their way into a pipe, one after another: never two in one write, so that a write that fails tells
 * exactly which message cannot have been read, because its line end never left.
 */
export interface Outbox {
  /** How many bytes the other side has not taken yet. */
  readonly waiting: number
  /** Resolves when the pipe has taken the whole line; one that is called off while it waits is never written. */
  send(body: Buffer, signal?: AbortSignal): Promise<void>
  /** Refuses what has not been begun, and whatever comes. */
  close(): void
}

interface Letter {
  readonly body: Buffer
  readonly signal: AbortSignal | undefined
  resolve(): void
  reject(reason: unknown): void
}

const newline = Buffer.from('\n')

/** `refuse` gets the way to reject a message that surely was not read, and says why and when. */
export function createOutbox(pipe: Writable, refuse: (reject: (reason: unknown) => void) => void): Outbox {
  /** What waits, and what ends the waiting. */
  const queue = new Map<Letter, () => void>()
  let queued = 0
  let closed = false

  return {
    get waiting() {
      return queued + pipe.writableLength
    },
    send(body, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const letter = { body, signal, resolve, reject }
      if (closed) refuse(reject)
      else if (queue.size === 0 && pipe.writableLength === 0) write(letter)
      else wait(letter)
      return promise
    },
    close,
  }

  function wait(letter: Letter): void {
    queue.set(letter, calledOff)
    queued += letter.body.length
    letter.signal?.addEventListener('abort', calledOff, { once: true })

    function calledOff(): void {
      take(letter)
      letter.reject(letter.signal?.reason)
    }
  }

  function take(letter: Letter): void {
    letter.signal?.removeEventListener('abort', queue.get(letter) as () => void)
    queue.delete(letter)
    queued -= letter.body.length
  }

  function write({ body, resolve, reject }: Letter): void {
    pipe.cork()
    pipe.write(body)
    pipe.write(newline, (error) => {
      if (error) {
        refuse(reject)
        close()
      } else {
        resolve()
        next()
      }
    })
    pipe.uncork()
    // Taken at once. What becomes of the pipe before the callback comes is no longer about this message.
    if (pipe.writableLength === 0 && !pipe.errored && !pipe.destroyed) resolve()
  }

  function close(): void {
    closed = true
    for (const letter of queue.keys()) {
      take(letter)
      refuse(letter.reject)
    }
  }

  function next(): void {
    for (const letter of queue.keys()) {
      if (pipe.writableLength > 0) return
      take(letter)
      write(letter)
    }
  }
}

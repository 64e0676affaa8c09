import type { EventConnection } from './resumable-streams.ts'

/** One event as a client reads it; an empty message is one that only gives an id. */
export interface Received {
  readonly id: string | undefined
  readonly message: string
}

/** A connection in memory. It can be lost long before that is noticed. */
export interface TestConnection extends EventConnection {
  readonly received: readonly Received[]
  /** The server has ended it. */
  readonly ended: boolean
  /** From now on messages are lost silently. */
  deafen(): void
  /** It accepts no more data, like a connection whose reader has stopped. Its end is noticed later. */
  choke(): void
  /** Closes the connection, and both sides notice. */
  cut(): void
}

export function createTestConnection(): TestConnection {
  const received: Received[] = []
  const listeners: (() => void)[] = []
  let hears = true
  let takes = true
  let open = true
  let ended = false

  const write = (message: string, id: string | undefined) => {
    if (open && takes && hears) received.push({ id, message })
    return open && takes
  }
  const close = () => {
    if (!open) return
    open = false
    for (const listener of listeners) listener()
  }

  return {
    received,
    get ended() {
      return ended
    },
    deafen() {
      hears = false
    },
    choke() {
      takes = false
    },
    cut: close,
    prime: (id) => void write('', id),
    send: (message, id) => write(message.toString(), id),
    resend: (message, id) => void write(message.toString(), id),
    end() {
      // A reader that receives nothing does not receive the end either.
      ended = open && hears && takes
      close()
    },
    onClose: (listener) => void listeners.push(listener),
  }
}

import type { EventConnection } from './resumable-streams.ts'

/** One event as a client reads it; an empty message is one that only gives an id. */
export interface Received {
  readonly id: string | undefined
  readonly message: string
}

/** A connection in memory. Its reader may stop hearing long before anybody notices. */
export interface TestConnection extends EventConnection {
  readonly received: readonly Received[]
  /** The server has ended it. */
  readonly ended: boolean
  /** From now on nothing reaches the reader, and nobody knows. */
  deafen(): void
  /** It takes nothing more, as one whose reader does not read; that it is gone shows later. */
  choke(): void
  /** Everybody knows that the connection is gone. */
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
      // A reader that hears nothing does not hear the end either.
      ended = open && hears && takes
      close()
    },
    onClose: (listener) => void listeners.push(listener),
  }
}

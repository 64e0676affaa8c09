import type { ConnectionHandle, HandedConnection } from '../../core/cluster.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { RpcPort } from '../../lib/port-rpc.ts'

// Workers hand clients' connections to one another through the primary (0110). As in `protocol.ts`, the names of the
// members are a wire format.

interface OfferMessage {
  readonly transferConnection: number
  /** The worker that gets the connection. */
  readonly to: string
  readonly bytes: Buffer
}

interface ReplyMessage {
  readonly handedOver: number
  readonly gone: boolean
}

/** Offers without an answer. Node transmits handles one by one, and all later messages of a channel wait for them. */
const maxTransfers = 4

export interface ConnectionTransfer {
  /** Resolves with false if nobody has taken the connection. The handle stays open in this process in any case. */
  offer(to: string, connection: HandedConnection): Promise<boolean>
  /** To be called when the other end is gone: it may have taken what it has not answered. */
  lost(): void
}

/** Both ends call this function. `receive` gets the offered connections, and resolves with false to refuse one. */
export function createConnectionTransfer(
  port: RpcPort,
  receive: (to: string, connection: HandedConnection) => boolean | Promise<boolean>,
): ConnectionTransfer {
  const offers = new Map<number, (gone: boolean) => void>()
  let lastId = 0

  port.onMessage(async (message, handle) => {
    if (isReply(message)) {
      offers.get(message.handedOver)?.(message.gone)
      offers.delete(message.handedOver)
    } else if (isOffer(message)) {
      const gone = handle && (await receive(message.to, { handle: handle as ConnectionHandle, bytes: message.bytes }))
      port.send({ handedOver: message.transferConnection, gone: Boolean(gone) } satisfies ReplyMessage)
    }
  })

  return {
    offer(to, { handle, bytes }) {
      if (offers.size >= maxTransfers) return Promise.resolve(false)
      const id = ++lastId
      const { promise, resolve } = Promise.withResolvers<boolean>()
      offers.set(id, resolve)
      if (port.send({ transferConnection: id, to, bytes } satisfies OfferMessage, handle)) return promise
      offers.delete(id)
      return Promise.resolve(false)
    },
    lost() {
      for (const resolve of offers.values()) resolve(true)
      offers.clear()
    },
  }
}

const isReply = (value: unknown): value is ReplyMessage => isRecord(value) && typeof value.handedOver === 'number'

const isOffer = (value: unknown): value is OfferMessage =>
  isRecord(value) && typeof value.transferConnection === 'number'

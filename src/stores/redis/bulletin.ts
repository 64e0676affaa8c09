import { type Bulletin, createBoard } from '../../core/bulletin.ts'
import type { Log } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import type { SharedRedis } from './connection.ts'

export interface RedisBulletinOptions {
  readonly redis: SharedRedis
  /** The name of this replica, which no other has. */
  readonly self: string
  /** What all replicas share, and nobody else knows. */
  readonly secret: string
  readonly log: Log
}

/** What is told is sealed: who can write to the channel, and does not know the secret, is not believed. */
export function redisBulletin({ redis, self, secret, log }: RedisBulletinOptions): Bulletin & AsyncDisposable {
  const channel = `${redis.prefix}bulletin`
  const seal = createSeal(secret)
  const board = createBoard(log)
  const ear = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not a fault: channels know no databases, and another fleet may use another one of the same Redis.
    if (opened === undefined) return log.debug({ channel }, 'what somebody told in Redis is not from this fleet')
    const [from, topic, text] = JSON.parse(opened) as [string, string, string]
    if (from !== self) board.hear(topic, text)
  })
  return {
    tell(topic, text) {
      const sealed = seal.close(JSON.stringify([self, topic, text]), 'bulletin')
      void redis.ask((client) => client.publish(channel, sealed))
    },
    on: board.on,
    [Symbol.asyncDispose]: () => ear[Symbol.asyncDispose](),
  }
}

import { createTopicListeners, type PubSub } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import type { SharedRedis } from './connection.ts'

export interface RedisPubSubOptions {
  readonly redis: SharedRedis
  /** The name of this replica, which no other has. */
  readonly self: string
  /** What all replicas share, and nobody else knows. */
  readonly secret: string
  readonly log: Log
}

/** What is told is sealed: who can write to the channel, and does not know the secret, is not believed. */
export function redisPubSub({ redis, self, secret, log }: RedisPubSubOptions): PubSub & AsyncDisposable {
  const channel = `${redis.prefix}bulletin`
  const seal = createSeal(secret)
  const board = createTopicListeners(log)
  const ear = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not a fault: channels know no databases, and another fleet may use another one of the same Redis.
    if (opened === undefined) return log.debug({ channel }, 'what somebody told in Redis is not from this fleet')
    const [from, topic, text] = JSON.parse(opened) as [string, string, string]
    if (from !== self) board.deliver(topic, text)
  })
  return {
    publish(topic, text) {
      const sealed = seal.close(JSON.stringify([self, topic, text]), 'bulletin')
      void redis.ask((client) => client.publish(channel, sealed))
    },
    subscribe: board.subscribe,
    [Symbol.asyncDispose]: () => ear[Symbol.asyncDispose](),
  }
}

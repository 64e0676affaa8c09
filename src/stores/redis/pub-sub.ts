import { createTopicListeners, type PubSub } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import type { SharedRedis } from './connection.ts'

export interface RedisPubSubOptions {
  readonly redis: SharedRedis
  readonly self: string
  /** Shared by all replicas, and secret. */
  readonly secret: string
  readonly log: Log
}

/** Messages are sealed: writing to the channel without the secret has no effect. */
export function redisPubSub({ redis, self, secret, log }: RedisPubSubOptions): PubSub & AsyncDisposable {
  const channel = `${redis.prefix}bulletin`
  const seal = createSeal(secret)
  const board = createTopicListeners(log)
  const ear = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not an error: channels span all databases, and another cluster may use another database of the same Redis.
    if (opened === undefined) return log.debug({ channel }, 'ignored a Redis message from another cluster')
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

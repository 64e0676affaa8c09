import { createTopicListeners, type PubSub } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { jsonValue } from '../../lib/parse-json.ts'
import type { Seal } from '../../lib/seal.ts'
import type { SharedRedis } from './connection.ts'

export interface RedisPubSubOptions {
  readonly redis: SharedRedis
  readonly self: string
  /** A seal whose secret all replicas share. */
  readonly seal: Seal
  readonly log: Log
}

/** The channel of all messages between replicas. */
export const pubSubChannel = ({ prefix }: Pick<SharedRedis, 'prefix'>): string => `${prefix}bulletin`

/** Broadcast through a Redis channel. Messages are sealed, so those written without the secret have no effect. */
export function redisPubSub({ redis, self, seal, log }: RedisPubSubOptions): PubSub & AsyncDisposable {
  const channel = pubSubChannel(redis)
  const listeners = createTopicListeners(log)
  const subscription = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not an error: all databases on a Redis server share channels, and another cluster may use another database.
    if (opened === undefined) return log.debug({ channel }, 'ignored a message in Redis that is not from this cluster')
    const [from, topic, text] = jsonValue(opened) as [string, string, string]
    if (from !== self) listeners.deliver(topic, text)
  })
  return {
    publish(topic, text) {
      const sealed = seal.close(JSON.stringify([self, topic, text]), 'bulletin')
      void redis.ask((client) => client.publish(channel, sealed))
    },
    subscribe: listeners.subscribe,
    [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
  }
}

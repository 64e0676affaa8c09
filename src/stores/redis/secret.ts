import { randomBytes } from 'node:crypto'
import type { SharedRedis } from './connection.ts'

/** A secret that all replicas share: the first one makes it. Undefined while Redis is away. */
export function sharedSecret(redis: SharedRedis, name: string): Promise<string | undefined> {
  const key = `${redis.prefix}secret:${name}`
  return redis.ask(async (client) => {
    const made = randomBytes(32).toString('base64url')
    return (await client.set(key, made, 'NX')) === 'OK' ? made : ((await client.get(key)) ?? made)
  })
}

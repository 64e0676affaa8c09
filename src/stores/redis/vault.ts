import { createHmac } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import type { Vault } from '../../core/stores.ts'
import { createSeal } from '../../lib/seal.ts'
import { derivedSecret } from '../secret-file.ts'
import { closeRecord, openRecord } from '../vault.ts'
import { redisAway, type SharedRedis } from './connection.ts'

const defaultMaxWaitMs = 10_000
const [firstPauseMs, maxPauseMs] = [50, 500]

export interface RedisVaultOptions {
  readonly redis: SharedRedis
  /** The sealing key, the same in all replicas' configurations; never sent to Redis. */
  readonly key: string
  readonly clock: Clock
  readonly maxWaitMs?: number
}

/**
 * A vault shared by all replicas, in one Redis hash (B10, B6). Field names reveal nothing without the key, and a value
 * copied to another field cannot be opened. Rejects while Redis is down, because a record that cannot be read is not
 * the same as an absent one.
 */
export function redisVault({ redis, key: secret, clock, maxWaitMs = defaultMaxWaitMs }: RedisVaultOptions): Vault {
  const seal = createSeal(derivedSecret(secret, 'vault'))
  const naming = derivedSecret(secret, 'vault names')
  const nameOf = (key: string) => createHmac('sha256', naming).update(key).digest('base64url')
  const at = `${redis.prefix}vault`

  const asked = async <T>(command: (client: Redis) => Promise<T>): Promise<T> => {
    const reply = await redis.ask(command)
    if (reply === undefined) throw redisAway('the OAuth grant')
    return reply
  }

  return {
    async read(key) {
      const name = nameOf(key)
      const sealed = await asked((client) => client.hget(at, name))
      return sealed === null ? undefined : openRecord(seal, name, sealed)?.text
    },
    async write(key, text) {
      const name = nameOf(key)
      const sealed = closeRecord(seal, name, { key, text })
      const end = clock.monotonic() + maxWaitMs
      // Retry, because a refresh token can be used only once: if the new token is not stored, the grant is lost.
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
        if ((await redis.ask((client) => client.hset(at, name, sealed))) !== undefined) return
        if (clock.monotonic() >= end) throw redisAway('the OAuth grant')
        await pause(clock, pauseMs)
      }
    },
    async remove(key) {
      await asked((client) => client.hdel(at, nameOf(key)))
    },
    async keys() {
      const all = await asked((client) => client.hgetall(at))
      return Object.entries(all)
        .flatMap(([name, sealed]) => openRecord(seal, name, sealed)?.key ?? [])
        .sort()
    },
  }
}

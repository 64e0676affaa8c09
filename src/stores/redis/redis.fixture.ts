import { randomUUID } from 'node:crypto'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { systemClock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { connectRedis, type SharedRedis } from './connection.ts'

/** Connects to Redis with a unique key prefix. */
export async function connected(url: string, log: Log = createKeptLog()): Promise<SharedRedis> {
  const redis = await connectRedis({ url, prefix: `${randomUUID()}:`, clock: systemClock, log })
  await until(() => redis.up, { what: 'Redis' })
  return redis
}

/** The same connection with other members. */
export const redisWith = (redis: SharedRedis, changes: Partial<SharedRedis>): SharedRedis =>
  new Proxy(redis, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) return changes[name as keyof SharedRedis]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

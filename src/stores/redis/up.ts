import type { Clock } from '../../core/clock.ts'
import type { SharedRedis } from './connection.ts'

/** What a start waits for Redis at most. */
const patienceMs = 2_000

/** Settles when Redis has answered, or has not for a while. */
export async function isUp(redis: SharedRedis, clock: Clock): Promise<void> {
  if (redis.up) return
  const { promise, resolve } = Promise.withResolvers<void>()
  using _listener = redis.onChange(() => resolve())
  using _timer = clock.after(patienceMs, resolve)
  await promise
}

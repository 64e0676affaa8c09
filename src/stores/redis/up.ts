import type { Clock } from '../../core/clock.ts'
import type { SharedRedis } from './connection.ts'

const patienceMs = 2_000

/** Resolves when Redis responds, or after `patienceMs`. */
export async function isUp(redis: SharedRedis, clock: Clock): Promise<void> {
  if (redis.up) return
  const { promise, resolve } = Promise.withResolvers<void>()
  using _listener = redis.onChange(() => resolve())
  using _timer = clock.after(patienceMs, resolve)
  await promise
}

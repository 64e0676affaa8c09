import { randomUUID } from 'node:crypto'
import type { LocalFleet } from '../../fixtures/fleet.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { askRedis } from '../../fixtures/redis.ts'
import { until } from '../../fixtures/until.ts'

interface Looking {
  /** Waits until the first answer is kept. */
  kept?(): Promise<unknown>
  readonly agent?: string
  readonly key?: string
}

/** What a server counts that is asked for the same three times, once by each replica. */
export async function looks(
  { endpoint }: LocalFleet,
  { kept, agent, key = randomUUID() }: Looking = {},
): Promise<number[]> {
  const acting: Record<string, string> = agent === undefined ? {} : { 'toolway-agent': agent }
  const look = async () => {
    const said = await rawModern(endpoint, {}, acting)('tools/call', { name: 'counted__look', arguments: { key } })
    return Number(JSON.parse(said).result.content[0].text)
  }
  const first = await look()
  await kept?.()
  return [first, await look(), await look()]
}

/** An answer does not wait until it is kept. */
export async function keptOne({ redis }: LocalFleet): Promise<() => Promise<unknown>> {
  const count = () => askRedis(redis, (client) => client.zcard('toolway:{cache}:order'))
  const before = await count()
  return () => until(async () => (await count()) > before, { what: 'a result to be kept' })
}

import { rawModern } from '../../fixtures/raw-callers.ts'
import { type RawSession, type RpcAnswer, rawSession } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'

export interface Counted {
  readonly allowed: number
  readonly refused: number
  /** How many of a minute's calls have come back while it was counted. */
  readonly back: number
}

interface Counting {
  readonly agent: string
  readonly perMinute: number
  readonly calls: number
  /** Both eras, or the stateless one alone, whose calls are spread evenly. */
  readonly eras?: 'both' | 'modern'
}

/** Makes so many calls as an agent, 16 at a time, and counts how many of them are within its limit. */
export async function countAllowed(
  endpoint: Endpoint,
  { agent, perMinute, calls, eras = 'modern' }: Counting,
): Promise<Counted> {
  const acting = { 'toolway-agent': agent }
  const ways: RawSession['ask'][] = [rawModern(endpoint, {}, acting)]
  if (eras === 'both') {
    const sessions = await Promise.all([1, 2, 3].map(() => rawSession(endpoint, { headers: acting })))
    ways.push(...sessions.map(({ ask }) => ask))
  }
  const begun = performance.now()
  let [allowed, refused, next] = [0, 0, 0]
  const caller = async () => {
    while (next < calls) {
      const number = next++
      const ask = ways[number % ways.length] as RawSession['ask']
      const said = await ask('tools/call', { name: 'hash', arguments: { data: String(number) } })
      const { result, error } = JSON.parse(said) as RpcAnswer
      if (error === undefined && result?.isError !== true) allowed++
      else if (said.includes('RATE_LIMITED')) refused++
      else throw new Error(said)
    }
  }
  await Promise.all(Array.from({ length: 16 }, caller))
  return { allowed, refused, back: ((performance.now() - begun) * perMinute) / 60_000 }
}

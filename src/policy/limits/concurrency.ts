import type { Config } from '../../config/schema.ts'
import { lineage } from '../lineage.ts'

type Agents = Readonly<Record<string, Pick<Config['agents'][string], 'concurrency'>>>

/** How many calls each agent may have in flight (B7): its own number, or the nearest in its family, for itself alone. */
export function compileConcurrency(agents: Agents): (agent: string) => number | undefined {
  const own = new Map(Object.entries(agents))
  const limits = new Map<string, number>()
  for (const agent of own.keys()) {
    const limit = lineage(agent, own)
      .map((name) => own.get(name)?.concurrency)
      .find((concurrency) => concurrency !== undefined)
    if (limit !== undefined) limits.set(agent, limit)
  }
  return (agent) => limits.get(agent)
}

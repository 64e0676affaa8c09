import type { Config, LimitsConfig } from '../../config/schema.ts'
import type { Limit, LimitedEntry, LimitsOf } from '../../core/buckets.ts'
import { lineage } from '../lineage.ts'
import { compileToolLimits } from './tools.ts'

export interface LimitsOptions {
  readonly limits: Pick<LimitsConfig, 'perMinute' | 'servers' | 'tools'>
  readonly agents: Readonly<Record<string, Pick<Config['agents'][string], 'perMinute'>>>
}

/** What a limit says before it is known whose call meets it. */
type Share = Omit<Limit, 'key'> & {
  /** The part of the key that is the same for every agent. */
  readonly of: string
}

const none: readonly Limit[] = []

/**
 * Which buckets a call draws from (F8). Every agent has its own: one for each tool with a limit, one for each server
 * with a limit (for its tools without one, its resources and prompts), and one for everything else; the most
 * particular one counts. Beside it there is the total of an agent that has one, or inherits one: the nearest number
 * in its family holds, and is spent by each member on its own.
 *
 * Tools that only carry other calls would have these counted twice, so they meet limits of their own alone.
 */
export function compileLimits({ limits, agents }: LimitsOptions): LimitsOf {
  const { perMinute } = limits
  const toolLimit = compileToolLimits(limits.tools)
  const servers = new Map(Object.entries(limits.servers))
  const totals = compileTotals(agents)

  const shareOf = (entry: LimitedEntry): Share | undefined => {
    const { kind, server, name, traits } = entry
    const tool = kind === 'tool' ? toolLimit(server, name, traits.carries === true) : undefined
    if (tool) return { ...tool, of: `tool ${server} ${name}`, scope: ` to ${server}.${name}` }
    const ofServer = servers.get(server)
    if (ofServer !== undefined) {
      const rule = `limits.servers.${server}`
      return { rule, perMinute: ofServer, of: `server ${server}`, scope: ` to the server ${server}` }
    }
    if (perMinute === undefined || traits.carries) return undefined
    return { rule: 'limits.perMinute', perMinute, of: 'default', scope: '' }
  }

  const unlimited = perMinute === undefined && servers.size === 0 && Object.keys(limits.tools).length === 0
  if (unlimited && totals.size === 0) return () => none
  // Entries live as long as somebody offers them, and so does what is known of them.
  const shares = new WeakMap<object, { readonly share: Share | undefined }>()

  return (agent, entry) => {
    let known = shares.get(entry)
    if (!known) {
      known = { share: shareOf(entry) }
      shares.set(entry, known)
    }
    const { share } = known
    const total = entry.traits.carries ? undefined : totals.get(agent)
    if (!share) return total ? [total] : none
    const { rule, perMinute, scope, of } = share
    // Agents and servers have no spaces in their names, so no two buckets can have the same key.
    const limit = { key: `${agent} ${of}`, perMinute, rule, scope }
    return total ? [limit, total] : [limit]
  }
}

/** The total of every agent that has one, or inherits one. */
function compileTotals(agents: LimitsOptions['agents']): ReadonlyMap<string, Limit> {
  const own = new Map(Object.entries(agents))
  const totals = new Map<string, Limit>()
  for (const agent of own.keys()) {
    const giver = lineage(agent, own).find((name) => own.get(name)?.perMinute !== undefined)
    const perMinute = giver === undefined ? undefined : own.get(giver)?.perMinute
    if (perMinute === undefined) continue
    totals.set(agent, { key: `${agent} total`, perMinute, rule: `agents.${giver}.perMinute`, scope: ' in all' })
  }
  return totals
}

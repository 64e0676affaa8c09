import type { Config, LimitsConfig } from '../config/schema.ts'
import type { Limit, LimitedEntry, LimitsOf } from '../core/stores.ts'
import { compilePattern } from '../lib/wildcard.ts'
import { inherited } from './agents.ts'

export interface LimitsOptions {
  readonly limits: Pick<LimitsConfig, 'perMinute' | 'servers' | 'tools'>
  readonly agents: Readonly<Record<string, Pick<Config['agents'][string], 'perMinute'>>>
}

/** A limit that has not been assigned to an agent yet. */
interface Share extends Omit<Limit, 'key'> {
  /** The part of the key that is the same for all agents. */
  readonly of: string
  /** The limits by agent. They are cached, because building a key for every call would cost more than the lookup. */
  readonly met: Map<string, Limit>
}

const none: readonly Limit[] = []

/** Max cached pairs of agent and limit, more than are in use. Bounded because tool names come from servers. */
const maxRemembered = 100_000

/**
 * Selects the buckets for a call (F8). Each agent has its own buckets: one per limited tool, one per limited server
 * (for its resources, its prompts, and its tools without their own limit), and one for everything else. The most
 * specific bucket applies. An agent may also have or inherit a total: the nearest number in its family applies, and
 * each member of the family has its own bucket.
 *
 * Tools that only run other calls are only subject to their own limits; otherwise those calls would count twice. A
 * program (`counted`) also takes time itself, so it counts as one call, in addition to the calls that it makes.
 */
export function compileLimits({ limits, agents }: LimitsOptions): LimitsOf {
  const totals = compileTotals(agents)
  const shareOf = compileShares(limits)
  if (totals.size === 0 && shareOf === undefined) return () => none
  let remembered = 0
  // A weak map, so that cached limits last only as long as their entries.
  let shares = new WeakMap<LimitedEntry, { readonly share: Share | undefined }>()

  const limitFor = (agent: string, { rule, perMinute, scope, of, met }: Share): Limit => {
    // Names of agents and servers contain no spaces, so the parts of a key cannot be confused.
    const limit = { key: `${agent} ${of}`, perMinute, rule, scope }
    met.set(agent, limit)
    if (++remembered > maxRemembered) {
      remembered = 0
      shares = new WeakMap()
    }
    return limit
  }

  return (agent, entry) => {
    let known = shares.get(entry)
    if (!known) {
      known = { share: shareOf?.(entry) }
      shares.set(entry, known)
    }
    const { share } = known
    const total = onlyCarries(entry) ? undefined : totals.get(agent)
    if (!share) return total ? [total] : none
    const limit = share.met.get(agent) ?? limitFor(agent, share)
    return total ? [limit, total] : [limit]
  }
}

const onlyCarries = ({ traits }: LimitedEntry): boolean => traits.carries === true && !traits.counted

function compileShares({ perMinute, servers, tools }: LimitsOptions['limits']) {
  if (perMinute === undefined && Object.keys(servers).length + Object.keys(tools).length === 0) return undefined
  const toolLimit = compileToolLimits(tools)
  const ofServers = new Map(
    Object.entries(servers).map(([server, calls]) => [
      server,
      share(`limits.servers.${server}`, calls, `server ${server}`, ` to the server ${server}`),
    ]),
  )
  const ofOthers = perMinute === undefined ? undefined : share('limits.perMinute', perMinute, 'default', '')
  return (entry: LimitedEntry): Share | undefined => {
    const { kind, server, name, aliases = [] } = entry
    const ofName = (one: string) => toolLimit(server, one, onlyCarries(entry)) ?? []
    const ofNames = kind === 'tool' ? [name, ...aliases].flatMap(ofName) : []
    const [tool] = ofNames.sort((a, b) => a.perMinute - b.perMinute)
    if (tool) return share(tool.rule, tool.perMinute, `tool ${server} ${name}`, ` to ${server}.${name}`)
    return ofServers.get(server) ?? (onlyCarries(entry) ? undefined : ofOthers)
  }
}

const share = (rule: string, perMinute: number, of: string, scope: string): Share => ({
  rule,
  perMinute,
  of,
  scope,
  met: new Map(),
})

const compileTotals = (agents: LimitsOptions['agents']): ReadonlyMap<string, Limit> =>
  new Map(
    [...inherited(agents, ({ perMinute }) => perMinute)].map(([agent, { from, value }]) => [
      agent,
      { key: `${agent} total`, perMinute: value, rule: `agents.${from}.perMinute`, scope: ' in total' },
    ]),
  )

/**
 * Compiles the limits by `server.tool`. An exact name applies first, then the most specific matching pattern. For a
 * tool that only runs other calls, only patterns that contain its server's name apply.
 */
function compileToolLimits(written: Readonly<Record<string, number>>) {
  const limits = Object.entries(written).map(([pattern, perMinute]) => ({
    pattern,
    matches: compilePattern(pattern),
    limit: { rule: `limits.tools.${pattern}`, perMinute },
  }))
  const names = new Map(limits.filter(({ pattern }) => !isPattern(pattern)).map((one) => [one.pattern, one.limit]))
  const patterns = limits.filter(({ pattern }) => isPattern(pattern)).sort(byParticularity)

  return (server: string, name: string, carries: boolean) => {
    const whole = `${server}.${name}`
    const own = (pattern: string) => !carries || pattern.startsWith(`${server}.`)
    return names.get(whole) ?? patterns.find(({ pattern, matches }) => own(pattern) && matches(whole))?.limit
  }
}

const isPattern = (text: string): boolean => text.includes('*')

/** Sorts patterns: longer literal prefix first, then more literal characters, then alphabetical order. */
function byParticularity({ pattern: a }: { pattern: string }, { pattern: b }: { pattern: string }): number {
  return b.indexOf('*') - a.indexOf('*') || letters(b) - letters(a) || (a < b ? -1 : 1)
}

const letters = (pattern: string): number => pattern.replaceAll('*', '').length

type Agents = Readonly<Record<string, Pick<Config['agents'][string], 'concurrency'>>>

/**
 * Max calls in flight per agent (B7): its own number, else the nearest inherited one. Agents are counted separately.
 */
export function compileConcurrency(agents: Agents): (agent: string) => number | undefined {
  const limits = inherited(agents, ({ concurrency }) => concurrency)
  return (agent) => limits.get(agent)?.value
}

import type { Config, LimitsConfig } from '../config/schema.ts'
import type { Call, Caller } from '../core/call.ts'
import { knownClient } from '../core/known-clients.ts'
import { builtInSources } from '../core/source.ts'
import type { Limit, LimitedEntry, LimitsOf } from '../core/stores.ts'
import { memoizeByObject, setBounded } from '../lib/memoize.ts'
import { compilePattern } from '../lib/wildcard.ts'
import { inheritSetting } from './agents.ts'
import { compilePatterns, createPatternCompiler, matchName, matchStar } from './patterns.ts'

export interface LimitsOptions {
  readonly limits: Pick<LimitsConfig, 'perMinute' | 'servers' | 'tools'> & Partial<Pick<LimitsConfig, 'per'>>
  readonly agents: Readonly<Record<string, Pick<Config['agents'][string], 'perMinute'>>>
}

/** A limit that has not been assigned to an agent or a client yet. */
interface Share extends Omit<Limit, 'key' | 'perClient'> {
  /** The part of the key that is the same for all agents or clients. */
  readonly of: string
  /** The limits by agent or client. They are cached, because building a key for every call would cost more. */
  readonly met: Map<string, Limit>
}

const noLimits: readonly Limit[] = []

/** Max agents or clients for which a limit is cached. Building it again is cheap. */
const maxOwners = 1_000

/**
 * Selects the buckets for a call (F8, W12). Each agent has its own buckets, or with `per: client` each principal: one per
 * limited tool, one per limited server (for its resources, its prompts, and its tools without their own limit), also if
 * `servers['*']` limits it, and one for everything else. The most specific bucket applies. An agent may also have or inherit a total: the nearest number
 * in its family applies, and each member of the family (or each of the member's clients) has its own bucket.
 *
 * Tools that only run other calls are only subject to their own limits; otherwise those calls would count twice. A
 * program (`counted`) also takes time itself, so it counts as one call, in addition to the calls that it makes.
 */
export function compileLimits({ limits, agents }: LimitsOptions): LimitsOf {
  const perClient = limits.per === 'client'
  const totals = compileTotals(agents)
  const shareOf = compileShares(limits)
  if (totals.size === 0 && shareOf === undefined) return () => noLimits
  const shareOfEntry = memoizeByObject((entry: LimitedEntry) => ({ share: shareOf?.(entry) }))

  const limitFor = ({ agent, principal }: Parameters<LimitsOf>[0], { met, of, ...limit }: Share): Limit => {
    const owner = perClient ? principal : agent
    const known = met.get(owner)
    if (known) return known
    // Names of agents and servers contain no spaces and no quotes, so the parts of a key cannot be confused.
    const key = `${perClient ? JSON.stringify(owner) : owner} ${of}`
    const own: Limit = { ...limit, key, ...(perClient && { perClient }) }
    setBounded(met, owner, own, maxOwners)
    return own
  }

  return (caller, entry) => {
    const { share } = shareOfEntry(entry)
    const total = onlyCarries(entry) ? undefined : totals.get(caller.agent)
    if (!share) return total ? [limitFor(caller, total)] : noLimits
    const limit = limitFor(caller, share)
    return total ? [limit, limitFor(caller, total)] : [limit]
  }
}

const onlyCarries = ({ traits }: LimitedEntry): boolean => traits.carries === true && !traits.counted

function compileShares({ perMinute, servers, tools }: LimitsOptions['limits']) {
  if (perMinute === undefined && Object.keys(servers).length + Object.keys(tools).length === 0) return undefined
  const toolLimit = compileToolLimits(tools)
  const ofServer = (server: string, calls: number, key = server) =>
    share(`limits.servers.${key}`, calls, `server ${server}`, ` to the server ${server}`)
  const { '*': each, ...named } = servers
  const ofServers = new Map(Object.entries(named).map(([server, calls]) => [server, ofServer(server, calls)]))
  const ofOthers = perMinute === undefined ? undefined : share('limits.perMinute', perMinute, 'default', '')
  return (entry: LimitedEntry): Share | undefined => {
    const { kind, server, name, aliases = [] } = entry
    const ofName = (one: string) => toolLimit(server, one, onlyCarries(entry)) ?? []
    const ofNames = kind === 'tool' ? [name, ...aliases].flatMap(ofName) : []
    const [tool] = ofNames.sort((a, b) => a.perMinute - b.perMinute)
    if (tool) return share(tool.rule, tool.perMinute, `tool ${server} ${name}`, ` to ${server}.${name}`)
    if (each !== undefined && !ofServers.has(server) && !builtInSources.includes(server))
      ofServers.set(server, ofServer(server, each, '*'))
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

const compileTotals = (agents: LimitsOptions['agents']): ReadonlyMap<string, Share> =>
  new Map(
    [...inheritSetting(agents, ({ perMinute }) => perMinute)].map(([agent, { from, value }]) => [
      agent,
      share(`agents.${from}.perMinute`, value, `total ${agent}`, ' in total'),
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
  const names = new Map(limits.filter(({ pattern }) => !isLimitPattern(pattern)).map((one) => [one.pattern, one.limit]))
  const patterns = limits.filter(({ pattern }) => isLimitPattern(pattern)).sort(byParticularity)

  return (server: string, name: string, carries: boolean) => {
    const whole = `${server}.${name}`
    const own = (pattern: string) => !carries || pattern.startsWith(`${server}.`)
    return names.get(whole) ?? patterns.find(({ pattern, matches }) => own(pattern) && matches(whole))?.limit
  }
}

const isLimitPattern = (text: string): boolean => text.includes('*')

/** Sorts patterns: longer literal prefix first, then more literal characters, then alphabetical order. */
function byParticularity({ pattern: a }: { pattern: string }, { pattern: b }: { pattern: string }): number {
  return b.indexOf('*') - a.indexOf('*') || literalLetters(b) - literalLetters(a) || (a < b ? -1 : 1)
}

const literalLetters = (pattern: string): number => pattern.replaceAll('*', '').length

type Agents = Readonly<Record<string, Pick<Config['agents'][string], 'concurrency'>>>

/**
 * Max calls in flight per agent (B7): its own number, else the nearest inherited one. Agents are counted separately.
 */
export function compileConcurrency(agents: Agents): (agent: string) => number | undefined {
  const limits = inheritSetting(agents, ({ concurrency }) => concurrency)
  return (agent) => limits.get(agent)?.value
}

/** Max clients whose limit for results is remembered. */
const maxClients = 1_000

/**
 * The limits for results (W7): of a tool, else of an agent, else of all, else of the client. Undefined if nothing is
 * limited or made compact.
 */
export function compileResultLimits({ results, agents }: Pick<Config, 'results' | 'agents'>) {
  const inherited = inheritSetting(agents, (agent) => agent.results?.maxTokens)
  const ofAgents = new Map([...inherited].map(([agent, { value }]) => [agent, value]))
  const perTool = Object.values(results.tools)
  const tools = compilePatterns(
    Object.keys(results.tools),
    createPatternCompiler(),
    (index) => perTool[index] as number,
  )
  const { maxTokens, compact } = results
  const isOff = maxTokens === 0 && [...perTool, ...ofAgents.values()].every((tokens) => tokens === 0)
  if (isOff && !compact) return undefined
  const clients = new Map<string | undefined, number>()
  const ofClient = (name: string | undefined): number => {
    const known = clients.get(name) ?? knownClient(name).maxResultTokens ?? 0
    setBounded(clients, name, known, maxClients)
    return known
  }
  const ofCaller = ({ agent, client }: Pick<Caller, 'agent' | 'client'>): number =>
    ofAgents.get(agent) ?? maxTokens ?? ofClient(client)
  const hasToolLimits = perTool.some((tokens) => tokens > 0)
  return {
    isForAll: compact || perTool.length > 0,
    agents: ofAgents,
    maxTokens,
    clients,
    ofClient,
    of({ caller, entry: { server, name } }: Pick<Call, 'caller' | 'entry'>): number {
      const tool = `${server}.${name}`
      return matchName(tools, tool) ?? matchStar(tools, tool) ?? ofCaller(caller)
    },
    /** Whether results of some tools may be cut for a caller. */
    mayCut: (caller: Pick<Caller, 'agent' | 'client'>): boolean => hasToolLimits || ofCaller(caller) > 0,
  }
}

import type { ServerDetail, ToolPage } from '../../admin/contract.ts'
import type { Config, ServerConfig } from '../../config/schema.ts'
import { isWithin, keyPath } from '../../config/tree.ts'
import { annotatedReads } from '../../core/tool-overrides.ts'
import { pluralize } from '../../lib/message-text.ts'
import { matches } from '../../lib/wildcard.ts'
import { Rules } from '../../policy/rules.ts'
import type { ProbeResult, ServerProber } from '../../runtime/probe-server.ts'
import { isThisGateway } from '../../runtime/upstream-servers.ts'
import type { RunningGateway } from '../running-gateway.ts'
import { took } from '../table.ts'
import type { DoctorContext } from './configuration.ts'
import { diagnose } from './failure-causes.ts'
import {
  type CheckContext,
  type CheckFinding,
  type DoctorChecks,
  type Findings,
  ok,
  type ProbedServer,
  problem,
  warning,
} from './finding.ts'

interface ServerCheckOptions extends Pick<ProbedServer, 'withinMs' | 'env' | 'command'> {
  readonly context: DoctorContext
  /** Probe only this server. */
  readonly only: string | undefined
  readonly prober: ServerProber
  /** Is asked first, so that no server that works is started again. */
  readonly running: RunningGateway | undefined
}

/** One check per server: connect, initialize, fetch the lists, disconnect. */
export function serverChecks({ context, only, prober, running, ...how }: ServerCheckOptions) {
  const { understood, unset, loaded } = context
  const servers = understood?.mcpServers ?? {}
  const names = Object.keys(servers).filter((name) => only === undefined || name === only)
  const known = new Map<string, readonly string[]>()
  const tools = Promise.withResolvers<typeof known>()
  let left = names.length
  if (left === 0) tools.resolve(known)

  const probe = async (name: string, signal: AbortSignal) => {
    const server = servers[name] as ServerConfig
    if (server.disabled) return ok('disabled, not checked')
    if (loaded && isThisGateway(server, loaded.config.server)) {
      return warning("it is Toolway's own endpoint and is ignored", `remove mcpServers.${name}`)
    }
    const variable = unset.find(({ key }) => isWithin(key, keyPath(['mcpServers', name])))?.variable
    if (variable !== undefined) {
      return problem(`not checked: the variable ${variable} in its configuration is not set`, `export ${variable}=…`)
    }
    const inUse = running && (await askGateway(running, name))
    if (inUse) known.set(name, inUse.tools)
    if (inUse) return inUse.finding
    const result = await prober.probe(name, server, how.withinMs, signal)
    const served = result.tools?.filter((tool) => isServed(server, tool))
    if (served) known.set(name, served)
    return serverFinding({ name, config: server, result, ...how })
  }

  const check = (name: string) => (signal: AbortSignal) =>
    probe(name, signal).finally(() => {
      if (--left === 0) tools.resolve(known)
    })
  const checks: DoctorChecks = Object.fromEntries(names.map((name) => [`server.${name}`, check(name)]))
  // Once all servers have been probed, `tools` resolves to the tools of every server that responded.
  return { checks, tools: tools.promise }
}

/** A server that the running gateway uses without any problem; undefined for one that has to be probed. */
async function askGateway({ get }: RunningGateway, name: string) {
  const found = await get<ServerDetail>(`servers/${encodeURIComponent(name)}`).catch(() => undefined)
  const { tools } = await get<ToolPage>(`tools?${new URLSearchParams({ server: name, limit: '500' })}`)
  if (found?.health !== 'healthy' || found.findings.length > 0 || tools.length === 0) return undefined
  const about = `${pluralize(tools.length, 'tool')}; ${found.protocolVersion} (${found.era}) over ${found.transport}`
  return { tools: tools.map(({ tool }) => tool), finding: ok(`${about}; in use by the running gateway`) }
}

const isServed = ({ tools: { include, exclude } }: ServerConfig, tool: string): boolean =>
  include.some((pattern) => matches(pattern, tool)) && !exclude.some((pattern) => matches(pattern, tool))

/** How many of the last stderr lines are shown. */
const maxDetails = 8

/** Describes the result of probing a server in one sentence, with the likely cause of a failure. */
export function serverFinding(server: ProbedServer): CheckFinding {
  const { result } = server
  const { failure, stderr, findings = [] } = result
  const found = findings.length > 0 ? { findings } : {}
  if (failure) {
    const { message, remedy } = diagnose(server, failure)
    const details = stderr.filter((line) => !isStackLine.test(line)).slice(-maxDetails)
    return { ...problem(message, remedy, details.length > 0 ? details : undefined), ...found }
  }
  const summary = summaryOf(result)
  return { ...(oddity(server, summary) ?? ok(summary)), ...found }
}

const isStackLine = /^at .*[:)]\d*/

/** A summary such as `13 tools; 2025-11-25 (legacy) over stdio; start 12 ms, handshake 310 ms, lists 20 ms`. */
function summaryOf({ tools = [], era, protocolVersion, transport, ...times }: ProbeResult): string {
  const { startMs, handshakeMs = 0, listMs = 0 } = times
  const steps = [
    ...(startMs === undefined ? [] : [`start ${took(startMs)}`]),
    `handshake ${took(handshakeMs)}`,
    `lists ${took(listMs)}`,
  ]
  return `${pluralize(tools.length, 'tool')}; ${protocolVersion} (${era}) over ${transport}; ${steps.join(', ')}`
}

/** A warning about a server that works but has something unusual; undefined if there is nothing unusual. */
function oddity({ name, config, result }: ProbedServer, summary: string): CheckFinding | undefined {
  const { missing = [], tools = [], hintedReads = [], others: rest = 0, transport, stdout, remarks } = result
  const { findings = [] } = result
  const setting = `mcpServers.${name}`
  const isRead = (tool: string) =>
    annotatedReads(config.tools).includes(tool) ||
    config.readTools.some((pattern) => matches(pattern, tool)) ||
    (config.trustAnnotations && hintedReads.includes(tool))
  if (missing.includes('tools/list')) {
    return problem(`${summary}; it failed to list its tools`, 'check its log', remarks)
  }
  if (transport === 'sse' && config.transport === 'http') {
    const message = `${summary}; it supports only the older HTTP+SSE transport, so the first attempt to connect always fails`
    return warning(message, `${setting}.transport: sse`)
  }
  if (stdout.length > 0) {
    const message = `${summary}; it writes lines to its standard output that are not messages ("${stdout[0]}")`
    return warning(
      message,
      'make it log to stderr; some clients disconnect a server that writes anything else to stdout',
    )
  }
  const [first, ...others] = findings
  if (first) {
    const remedy = first.setting === undefined ? author : `raise ${first.setting} if you trust the server, or ${author}`
    return warning(`${summary}; ${first.message}`, remedy, [...others.map(({ message }) => message), ...remarks])
  }
  if (remarks.length > 0) return warning(`${summary}; ${remarks[0]}`, author, remarks.slice(1))
  if (config.readOnly && tools.length > 0 && !tools.some(isRead)) {
    const remedy = hintedReads.length > 0 ? `${setting}.trustAnnotations: true` : `${setting}.readTools: [${tools[0]}]`
    const reason = 'readOnly is set, but none of its tools is known to be read-only (readTools, trustAnnotations)'
    return warning(`${summary}; ${reason}, so none can be used`, remedy)
  }
  if (tools.length + rest === 0)
    return warning(`${summary}; it offers no tools, resources or prompts`, `${setting}.disabled: true`)
  return undefined
}

const author = 'report this to its author'

/** Checks that every agent may use at least one available tool. */
export async function agentFindings(
  config: Config,
  tools: Promise<ReadonlyMap<string, readonly string[]>>,
  { command }: Pick<CheckContext, 'command'>,
): Promise<Findings> {
  const agents = Object.keys(config.agents)
  if (agents.length === 0) return ok('no rules: every caller may use every tool')
  const known = new Map([...(await tools), ['native', config.native.tools]])
  const enabled = Object.entries(config.mcpServers).filter(([, { disabled }]) => !disabled)
  const silent = enabled.map(([name]) => name).filter((name) => !known.has(name))
  const servers = Object.keys(config.mcpServers)
  const rules = new Rules({ agents: config.agents, policy: config.policy, servers })

  const isIdle = (agent: string): boolean => {
    // An agent that is denied everything is meant to have no tools.
    if (config.agents[agent]?.deny.servers.includes('*')) return false
    const caller = { agent, authenticated: true }
    // The tools of a server that did not respond are unknown; this agent may be allowed to use them.
    if (silent.some((server) => rules.closed(caller, server) === undefined)) return false
    return ![...known].some(([server, names]) =>
      names.some((name) => rules.decide(caller, { kind: 'tool', server, name }).allowed),
    )
  }
  const idle = agents.filter(isIdle)
  if (idle.length === 0)
    return ok(
      `${pluralize(agents.length, 'agent')}; each may use at least one tool or is denied everything by its rules`,
    )
  const [server = 'native', names = []] = [...known].find(([, offered]) => offered.length > 0) ?? []
  const tool = `${server}.${names[0] ?? 'hash'}`
  return idle.map((agent) =>
    warning(`${agent} may not use any of the available tools`, `${command} why ${agent} ${tool}`),
  )
}

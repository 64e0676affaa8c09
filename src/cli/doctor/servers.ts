import type { Config, HttpConfig, ServerConfig } from '../../config/schema.ts'
import { keyPath } from '../../config/tree.ts'
import { matches } from '../../lib/wildcard.ts'
import { compileRules } from '../../policy/rules.ts'
import type { ProbeResult, ServerProber } from '../../runtime/probe-server.ts'
import { count, took } from '../table.ts'
import type { DoctorContext } from './configuration.ts'
import { type Diagnosis, diagnose, type FailedProbe, type ProbedServer } from './diagnosis.ts'
import { type CheckFinding, type DoctorCheck, ok, problem, warning } from './finding.ts'
import { httpCauses } from './http-causes.ts'
import { stdioCauses } from './stdio-causes.ts'

interface ServerChecks {
  readonly checks: readonly DoctorCheck[]
  /** The tools of each server that responded, once all have been probed. */
  readonly tools: Promise<ReadonlyMap<string, readonly string[]>>
}

interface ServerCheckOptions {
  readonly situation: DoctorContext
  /** Probe only this server. */
  readonly only: string | undefined
  readonly examiner: ServerProber
  readonly withinMs: number
  /** The user's environment; servers get only a part of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One check per server: connect, initialize, fetch the lists, disconnect. */
export function serverChecks({ situation, only, examiner, withinMs, env }: ServerCheckOptions): ServerChecks {
  const { understood, unset, loaded } = situation
  const servers = understood?.mcpServers ?? {}
  const names = Object.keys(servers).filter((name) => only === undefined || name === only)
  const known = new Map<string, readonly string[]>()
  const told = Promise.withResolvers<typeof known>()
  let left = names.length
  if (left === 0) told.resolve(known)

  const look = async (name: string, signal: AbortSignal) => {
    const server = servers[name] as ServerConfig
    if (server.disabled) return ok('disabled, not checked')
    if (loaded && isOurselves(server, loaded.config.server)) {
      return warning('is our own endpoint; Toolway ignores it', `remove mcpServers.${name}`)
    }
    const variable = unset.find(({ key }) => within(key, name))?.variable
    if (variable !== undefined) {
      return problem(`not checked: the variable ${variable} of its configuration is not set`, `export ${variable}=…`)
    }
    const examination = await examiner.probe(name, server, withinMs, signal)
    if (examination.tools)
      known.set(
        name,
        examination.tools.filter((tool) => isServed(server, tool)),
      )
    return serverFinding({ name, config: server, examination, withinMs, env })
  }

  return {
    tools: told.promise,
    checks: names.map((name) => ({
      name: `server.${name}`,
      run: (signal) =>
        look(name, signal).finally(() => {
          if (--left === 0) told.resolve(known)
        }),
    })),
  }
}

const isServed = ({ tools: { include, exclude } }: ServerConfig, tool: string): boolean =>
  include.some((pattern) => matches(pattern, tool)) && !exclude.some((pattern) => matches(pattern, tool))

/** Whether a key is inside the entry of a server. */
function within(key: string, server: string): boolean {
  const start = keyPath(['mcpServers', server])
  return key === start || key.startsWith(`${start}.`) || key.startsWith(`${start}[`)
}

/** Loopback by any of its names, on our own port and path. */
function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

/** How many of the last stderr lines are shown. */
const maxDetails = 8

/** Describes the result of probing a server in one sentence, with the likely cause of a failure. */
export function serverFinding(tried: ProbedServer): CheckFinding {
  const { examination } = tried
  const { failure, stderr } = examination
  if (failure) {
    const { message, remedy } = cause({ ...tried, failure })
    const details = stderr.filter(isTelling).slice(-maxDetails)
    return problem(message, remedy, details.length > 0 ? { details } : {})
  }
  const summary = summaryOf(examination)
  return oddity(tried, summary) ?? ok(summary)
}

/** Stack trace lines are left out. */
const isTelling = (line: string): boolean => !/^at .*[:)]\d*/.test(line)

function cause(failed: FailedProbe): Diagnosis {
  const { config } = failed
  return config.transport === 'stdio'
    ? diagnose(stdioCauses, { ...failed, config })
    : diagnose(httpCauses, { ...failed, config })
}

/** `13 tools; 2025-11-25 (legacy) over stdio; start 12 ms, handshake 310 ms, lists 20 ms`. */
function summaryOf({ tools = [], era, protocolVersion, transport, ...times }: ProbeResult): string {
  const { startMs, handshakeMs = 0, listMs = 0 } = times
  const steps = [
    ...(startMs === undefined ? [] : [`start ${took(startMs)}`]),
    `handshake ${took(handshakeMs)}`,
    `lists ${took(listMs)}`,
  ]
  return `${count(tools.length, 'tool')}; ${protocolVersion} (${era}) over ${transport}; ${steps.join(', ')}`
}

/** Something odd about a server that works. */
function oddity({ name, config, examination }: ProbedServer, summary: string): CheckFinding | undefined {
  const { missing = [], tools = [], hintedReads = [], others = 0, transport, stdout, remarks } = examination
  const setting = `mcpServers.${name}`
  const isRead = (tool: string) =>
    config.readTools.some((pattern) => matches(pattern, tool)) ||
    (config.trustAnnotations && hintedReads.includes(tool))
  if (missing.includes('tools/list')) {
    return problem(`${summary}; it failed to list its tools`, 'check its log', { details: remarks })
  }
  if (transport === 'sse' && config.transport === 'http') {
    return warning(
      `${summary}; it speaks only the older HTTP+SSE, which costs a failed attempt at each start`,
      `${setting}.transport: sse`,
    )
  }
  if (stdout.length > 0) {
    const said = `${summary}; it also writes to its standard output what is not a message ("${stdout[0]}")`
    return warning(said, 'make it log to stderr: other clients may disconnect it')
  }
  if (remarks.length > 0)
    return warning(`${summary}; ${remarks[0]}`, 'report it to its author', { details: remarks.slice(1) })
  if (config.readOnly && tools.length > 0 && !tools.some(isRead)) {
    const remedy = hintedReads.length > 0 ? `${setting}.trustAnnotations: true` : `${setting}.readTools: [${tools[0]}]`
    return warning(
      `${summary}; it is read-only and none of its tools is known to be a read (readTools, trustAnnotations), so none can be used`,
      remedy,
    )
  }
  if (tools.length + others === 0)
    return warning(`${summary}; it offers no tools, resources or prompts`, `${setting}.disabled: true`)
  return undefined
}

/** Checks that every agent may use at least one available tool. */
export const agentCheck = (
  config: Config,
  tools: Promise<ReadonlyMap<string, readonly string[]>>,
  command: string,
): DoctorCheck => ({
  name: 'agents',
  async run() {
    const agents = Object.keys(config.agents)
    if (agents.length === 0) return ok('no rules: every caller may use every tool')
    const known = new Map([...(await tools), ['native', config.native.tools]])
    const enabled = Object.entries(config.mcpServers).filter(([, { disabled }]) => !disabled)
    const silent = enabled.map(([name]) => name).filter((name) => !known.has(name))
    const servers = Object.keys(config.mcpServers)
    const rules = compileRules({ agents: config.agents, policy: config.policy, servers })

    const isIdle = (agent: string): boolean => {
      // Denying everything is intended.
      if (config.agents[agent]?.deny.servers.includes('*')) return false
      const caller = { agent, authenticated: true }
      // The tools of a server that did not respond are unknown.
      if (silent.some((server) => rules.closed(caller, server) === undefined)) return false
      return ![...known].some(([server, names]) =>
        names.some((name) => rules.decide(caller, { kind: 'tool', server, name }).allowed),
      )
    }
    const idle = agents.filter(isIdle)
    if (idle.length === 0)
      return ok(`${count(agents.length, 'agent')}, each with at least one tool, or denied everything on purpose`)
    const [server = 'native', names = []] = [...known].find(([, offered]) => offered.length > 0) ?? []
    return idle.map((agent) =>
      warning(
        `${agent} may not use any of the available tools`,
        `${command} why ${agent} ${server}.${names[0] ?? 'hash'}`,
      ),
    )
  },
})

import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { serversSentence } from '../../core/servers-sentence.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { costsOf } from '../../core/tokens.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { agentId, listResult, type MetaToolsOptions, requestedServers, usableTools } from './shared.ts'

const listServersInput = z.object({
  agent_id: agentId,
  include_metadata: z
    .boolean()
    .default(false)
    .describe('Also return transport, era, since, last_error and, if any, findings.'),
})

export const listServers = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'list_servers',
    title: 'List servers',
    description: (servers) =>
      'Lists the servers whose tools you can use: name, description, status, number of tools. Start here for an ' +
      'overview, then use get_server_tools(server) for definitions and execute_tool to call one. For a specific task, ' +
      `find_tool is quicker.${serversSentence(servers)}`,
    input: listServersInput,
    readOnly: true,
    async run({ agent_id, include_metadata }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready('brief')
      const servers = view.servers().map(include_metadata ? withMetadata : summary)
      return listResult({ servers }, { returned: servers.length })
    },
  })

const summary = ({ name, status, tools }: ServerSummary) => ({
  name,
  description: status.description,
  status: status.health,
  tools,
  // A server that is up and has nothing to show looks like success without a reason.
  ...(status.health === 'healthy' && tools === 0 && status.reason !== '' && { reason: status.reason }),
})

const withMetadata = (server: ServerSummary) => ({
  ...summary(server),
  transport: server.status.transport,
  era: server.status.era ?? null,
  since: new Date(server.status.since).toISOString(),
  last_error: server.status.lastError ?? null,
  ...findingsOf(server),
})

/** The findings, if there are any: most servers have none, and every field uses the model's context. */
const findingsOf = ({ status: { findings } }: Pick<ServerSummary, 'status'>) => (findings ? { findings } : {})

const serverHealthInput = z.object({
  agent_id: agentId,
  server: z.string().optional().describe('A name from list_servers; all servers if absent.'),
})

export const serverHealth = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'server_health',
    title: 'Server health',
    description:
      'Returns the health of a server (healthy, degraded, unhealthy, needs-auth, starting, stale, disabled), since when and ' +
      'why; findings say which of its tools or results were left out. Use it after a failed call or if a tool is ' +
      'missing. Without "server", returns all servers: {servers: [...]}.',
    input: serverHealthInput,
    readOnly: true,
    run({ agent_id, server }, { call }) {
      const healths = requestedServers(access.view(asAgent(call, agent_id)), server).map(healthOf)
      return server === undefined ? { servers: healths } : healths[0]!
    },
  })

const healthOf = ({ name, status, tools }: ServerSummary) => ({
  name,
  status: status.health,
  reason: status.reason,
  since: new Date(status.since).toISOString(),
  protocolVersion: status.protocolVersion ?? null,
  breaker: status.breaker,
  tools,
  latencyMs: status.latencyMs ?? null,
  ...findingsOf({ status }),
})

const registrySummaryInput = z.object({ agent_id: agentId })

export const registrySummary = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'registry_summary',
    title: 'Registry summary',
    description:
      'Counts what you can use: servers, tools, servers by status, and the context tokens that the definitions use: ' +
      'all of them (direct), the meta-tools (meta), both, or what code mode shows (code).',
    input: registrySummaryInput,
    readOnly: true,
    async run({ agent_id }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready()
      const servers = view.servers()
      const counts = { healthy: 0, degraded: 0, unhealthy: 0, 'needs-auth': 0, starting: 0, stale: 0, disabled: 0 }
      for (const { status } of servers) counts[status.health] += 1
      const tools = usableTools(view).length
      return { servers: servers.length, tools, by_status: counts, tokens: costsOf(view) }
    },
  })

const getGatewayStatusInput = z.object({ agent_id: agentId })

export const getGatewayStatus = ({ access, clock, status, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'get_gateway_status',
    title: 'Gateway status',
    description:
      "Shows the gateway's status: configuration files and their last reload, policy, servers. Use it to find " +
      'out why something is missing or out of date. You do not need it to use tools.',
    input: getGatewayStatusInput,
    readOnly: true,
    run({ agent_id }, context) {
      const caller = asAgent(context.call, agent_id)
      const visible = status(caller)
      if ('refusedBy' in visible) {
        throw new ToolwayError(
          'DENIED_BY_POLICY',
          "This agent may not see the gateway's status; the operator can allow it with debug: true in its rules, or for " +
            'all agents with defaults.debug.',
          { rule: visible.refusedBy },
        )
      }
      const servers = access.view(caller).servers().map(withMetadata)
      return { time: new Date(clock.now()).toISOString(), ...visible, servers }
    },
  })

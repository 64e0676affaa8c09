import * as z from 'zod'
import type { ServerSummary } from '../../core/source-status.ts'
import { defineTool, type Tool } from '../define.ts'
import { agentId, type MetaToolsOptions } from './options.ts'
import { serversAsked } from './reach.ts'

export const serverHealth = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'server_health',
    title: 'Server health',
    description:
      'Tells whether a server can be used now (healthy, degraded, unhealthy, needs-auth, starting, stale, disabled), since when and ' +
      'why. For use after a call has failed. With a server: its health; without: {servers: [...]}.',
    input: z.object({
      agent_id: agentId,
      server: z.string().optional().describe('A name from list_servers; all servers if absent.'),
    }),
    readOnly: true,
    run({ agent_id, server }, { call }) {
      const healths = serversAsked(access.view(asAgent(call, agent_id)), server).map(healthOf)
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
})

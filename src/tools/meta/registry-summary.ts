import * as z from 'zod'
import type { Served } from '../../core/access.ts'
import type { Health } from '../../core/source.ts'
import { defineTool, type Tool } from '../define.ts'
import { agentId, type MetaToolsOptions } from './options.ts'
import { toolsBehind } from './reach.ts'
import { tokensOf } from './tokens.ts'

export const registrySummary = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'registry_summary',
    title: 'Registry summary',
    description:
      'Counts what you can use: servers, tools, servers by status, and what the definitions cost a context in tokens, ' +
      'all of them (direct) against the meta-tools alone (meta).',
    input: z.object({ agent_id: agentId }),
    readOnly: true,
    async run({ agent_id }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready()
      const servers = view.servers()
      const tools = toolsBehind(view)
      const byStatus: Record<Health, number> = {
        healthy: 0,
        degraded: 0,
        unhealthy: 0,
        'needs-auth': 0,
        stale: 0,
        disabled: 0,
      }
      for (const { status } of servers) byStatus[status.health] += 1
      const tokens = { direct: cost(tools), meta: cost(toolsBehind(view, call.entry.server)) }
      return { servers: servers.length, tools: tools.length, by_status: byStatus, tokens }
    },
  })

const cost = (tools: readonly Served[]) =>
  tools.reduce((sum, { name, definition }) => sum + tokensOf(name, definition), 0)

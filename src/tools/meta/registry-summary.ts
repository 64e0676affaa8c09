import * as z from 'zod'
import type { Health } from '../../core/source-status.ts'
import { costsOf } from '../../core/tokens.ts'
import { defineTool, type Tool } from '../define.ts'
import { agentId, type MetaToolsOptions } from './options.ts'
import { toolsBehind } from './reach.ts'

export const registrySummary = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'registry_summary',
    title: 'Registry summary',
    description:
      'Counts what you can use: servers, tools, servers by status, and what the definitions cost a context in tokens: ' +
      'all of them (direct), the meta-tools (meta), both, or what code mode shows (code).',
    input: z.object({ agent_id: agentId }),
    readOnly: true,
    async run({ agent_id }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready()
      const servers = view.servers()
      const byStatus: Record<Health, number> = {
        healthy: 0,
        degraded: 0,
        unhealthy: 0,
        'needs-auth': 0,
        starting: 0,
        stale: 0,
        disabled: 0,
      }
      for (const { status } of servers) byStatus[status.health] += 1
      return {
        servers: servers.length,
        tools: toolsBehind(view).length,
        by_status: byStatus,
        tokens: costsOf(view),
      }
    },
  })

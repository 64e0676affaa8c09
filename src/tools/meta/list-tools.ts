import * as z from 'zod'
import { defineTool, type Tool } from '../define.ts'
import { carrierTimeoutMs, waitOf } from './carry.ts'
import { oneLine } from './one-line.ts'
import { agentId, type MetaToolsOptions } from './options.ts'
import { missingFrom, refuseClosed, serversAsked, toolsBehind } from './reach.ts'

export const listTools = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'list_tools',
    title: 'List tools',
    description:
      'Lists the tools of one server, or of all, by name and one line each, without schemas. Cheap; still, with ' +
      'hundreds of tools find_tool is cheaper.',
    input: z.object({
      agent_id: agentId,
      server: z.string().optional().describe('A name from list_servers; all servers if absent.'),
    }),
    readOnly: true,
    timeoutMs: carrierTimeoutMs,
    async run({ agent_id, server }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await (server === undefined ? view.ready() : view.started(server, waitOf(call)))
      refuseClosed(view, server)
      serversAsked(view, server)
      const tools = toolsBehind(view, server).map(({ entry }) => ({
        server: entry.server,
        name: entry.name,
        description: oneLine(entry.definition.description),
      }))
      const missing = missingFrom(view, server)
      return { tools, total: tools.length, ...(missing.length > 0 && { missing }) }
    },
  })

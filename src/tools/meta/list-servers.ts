import * as z from 'zod'
import type { ServerSummary } from '../../core/source-status.ts'
import { defineTool, type Tool } from '../define.ts'
import { behindSentence } from './behind.ts'
import { agentId, type MetaToolsOptions } from './options.ts'

export const listServers = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'list_servers',
    title: 'List servers',
    description: (servers) =>
      'Lists the servers whose tools you can use: name, what it is for, status, number of tools. Begin here for an ' +
      'overview; then get_server_tools(server) for definitions and execute_tool to call one. For one particular task ' +
      `find_tool is quicker.${behindSentence(servers)}`,
    input: z.object({
      agent_id: agentId,
      include_metadata: z.boolean().default(false).describe('Also transport, era, since and last_error.'),
    }),
    readOnly: true,
    async run({ agent_id, include_metadata }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready('brief')
      return { servers: view.servers().map(include_metadata ? withMetadata : summary) }
    },
  })

const summary = ({ name, status, tools }: ServerSummary) => ({
  name,
  description: status.description,
  status: status.health,
  tools,
})

/** One server as `list_servers` shows it with metadata; what is not known is null. */
export const withMetadata = (server: ServerSummary) => ({
  ...summary(server),
  transport: server.status.transport,
  era: server.status.era ?? null,
  since: new Date(server.status.since).toISOString(),
  last_error: server.status.lastError ?? null,
})

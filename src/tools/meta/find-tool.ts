import * as z from 'zod'
import type { Served } from '../../core/access.ts'
import { defineTool, type Tool } from '../define.ts'
import { behindSentence } from './behind.ts'
import { oneLine } from './one-line.ts'
import { agentId, type MetaToolsOptions } from './options.ts'
import { serversAsked } from './reach.ts'

/** One tool under two names: `find_tool`, and `search_tools` for callers that know it so. */
export const findTool = ({ access, asAgent }: MetaToolsOptions, name: 'find_tool' | 'search_tools'): Tool =>
  defineTool({
    name,
    title: 'Find a tool',
    description: (servers) =>
      'Finds tools for a task among all servers, best first. Use it whenever none of the tools that you see fits, and ' +
      'before you say that something cannot be done. Then run a match with execute_tool(server, name, args); ' +
      `detail "full" gives its inputSchema.${behindSentence(servers)}`,
    input: z.object({
      agent_id: agentId,
      query: z.string().min(1).max(1000).describe('What it should do, in a few words: "read a text file".'),
      limit: z.int().min(1).max(50).default(5).describe('How many matches at most.'),
      server: z.string().optional().describe('Only tools of this server.'),
      detail: z.enum(['brief', 'full']).default('brief').describe('full: also whole descriptions and inputSchema.'),
    }),
    readOnly: true,
    async run({ agent_id, query, limit, server, detail }, { call }) {
      const view = access.view(asAgent(call, agent_id))
      await view.ready()
      const servers = new Set(serversAsked(view, server).map((asked) => asked.name))
      // All that match are asked for: some may be meta-tools, which nobody has to find, and the total is told.
      const scope = { limit: view.list('tool').length, ...(server !== undefined && { server }) }
      const found = view.search(query, scope).filter(({ entry }) => servers.has(entry.server))
      const matches = found.slice(0, limit).map(detail === 'full' ? full : brief)
      return { matches, returned: matches.length, total: found.length }
    },
  })

const brief = ({ entry: { server, name, definition } }: Served) => ({
  server,
  name,
  description: oneLine(definition.description),
})

const full = ({ entry: { server, name, definition } }: Served) => ({
  server,
  name,
  description: definition.description ?? '',
  inputSchema: definition.inputSchema ?? { type: 'object' },
})

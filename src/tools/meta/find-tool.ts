import * as z from 'zod'
import type { Served, ToolMatches, View } from '../../core/access.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { nearMisses } from '../../lib/similar-text.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { outerTimeoutMs } from './nested-call.ts'
import {
  agentId,
  briefly,
  listResult,
  type MetaToolsOptions,
  missingFrom,
  serversSentence,
  startedView,
  usableTools,
} from './shared.ts'

const findToolInput = z.object({
  agent_id: agentId,
  query: z
    .string()
    .min(1)
    .max(1000)
    .describe('What the tool should do, such as "read a text file". For several steps, write one sentence each.'),
  limit: z.int().min(1).max(50).default(5).describe('Maximum number of matches.'),
  server: z.string().optional().describe('Only tools on this server.'),
  detail: z.enum(['brief', 'full']).default('brief').describe('"full" adds the whole description and the inputSchema.'),
})

/** The tool search, listed as `find_tool`; code mode lists it as `search_tools`. */
export const findTool = (options: MetaToolsOptions): Tool =>
  defineTool({
    name: 'find_tool',
    aliases: ['search_tools'],
    title: 'Find a tool',
    description,
    input: findToolInput,
    readOnly: true,
    timeoutMs: outerTimeoutMs,
    async run({ agent_id, query, limit, server, detail }, { call }) {
      const view = await startedView(options, call, { agent_id, server })
      const found = view.search(query, { limit, server })
      const matches = found.tools.map(detail === 'full' ? full : briefly)
      const missing = missingFrom(view, server)
      const hint = missing.length > 0 && server !== undefined ? undefined : hintFor(found, view, query, server)
      const answer = {
        matches,
        returned: matches.length,
        total: found.total,
        hint,
        missing: missing.length > 0 ? missing : undefined,
      }
      return listResult(answer, { requested: limit, returned: matches.length })
    },
  })

/** The description under either name. In code mode, programs call the tools, so the text omits `execute_tool`. */
const description = (servers: readonly ServerSummary[], name: string) =>
  'Searches the tools on all servers for a task, best match first. Use it whenever none of the tools you see fits, and ' +
  `before you say that something cannot be done. ${name === 'search_tools' ? inPrograms : byCall}${serversSentence(servers)}`

const byCall = 'Then run a match with execute_tool(server, name, args); detail "full" adds its inputSchema.'
const inPrograms =
  'Then get the declaration of a match with describe_tools and call it in execute_code as tools.server.name(args).'

const full = ({ entry: { server, name, definition } }: Served) => ({
  server,
  name,
  description: definition.description ?? '',
  inputSchema: definition.inputSchema ?? { type: 'object' },
})

function hintFor({ tools, total }: ToolMatches, view: View, query: string, server?: string): string | undefined {
  if (total > tools.length) {
    const narrower = server === undefined ? ', set server' : ''
    return `Showing ${tools.length} of ${total} matches; use a more specific query${narrower} or raise limit.`
  }
  if (total > 0) return undefined
  const where = server === undefined ? 'No tool' : `No tool on the server ${server}`
  const meant = wordsMeant(query, usableTools(view, server))
  if (meant.length > 0) return `${where} matches these words; did you mean ${meant.join(' or ')}?`
  const other = server === undefined ? 'call list_servers to see what is available' : 'search all servers'
  return `${where} matches these words; try other words, or ${other}.`
}

/** Max words in a query to compare with known words. Longer queries rarely consist of misspelt words only. */
const maxCompared = 5

function wordsMeant(query: string, tools: readonly Served[]): readonly string[] {
  const known = new Set(tools.flatMap(({ entry }) => wordsIn(entry.name)))
  const near = wordsIn(query)
    .slice(0, maxCompared)
    .flatMap((word) => nearMisses(word, known))
  return [...new Set(near)].slice(0, 3).map((word) => `"${word}"`)
}

const wordsIn = (text: string): string[] =>
  text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]{3,}/gu) ?? []

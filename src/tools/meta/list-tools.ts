import * as z from 'zod'
import type { Served, ToolMatches, View } from '../../core/access.ts'
import { seenName } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { type Result, resultOf, structuredResult } from '../../core/result.ts'
import { serversSentence } from '../../core/servers-sentence.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { tokensOf } from '../../core/tokens.ts'
import { nearMisses } from '../../lib/similar-text.ts'
import { compilePattern } from '../../lib/wildcard.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { outerTimeoutMs, waitFor } from './nested-call.ts'
import {
  agentId,
  briefly,
  listResult,
  type MetaToolsOptions,
  missingFrom,
  nameOnly,
  serverNotFound,
  startedView,
  usableTools,
} from './shared.ts'

const getServerToolsInput = z.object({
  agent_id: agentId,
  server: z.string().describe('A name from list_servers.'),
  names: z.array(z.string()).optional().describe('Return only these tools; unknown names are ignored.'),
  pattern: z
    .string()
    .max(1000)
    .optional()
    .describe('Return only tools whose name matches; * matches any text: "read_*".'),
  max_schema_tokens: z.int().min(0).optional().describe('Truncate the list to this many tokens.'),
})

export const getServerTools = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'get_server_tools',
    title: 'Get the tools of a server',
    description:
      'Returns the definitions (name, description, inputSchema) of the tools on one server. Read them before you call ' +
      'execute_tool. On a large server, filter by names or pattern, and set max_schema_tokens.',
    input: getServerToolsInput,
    readOnly: true,
    // This timeout can be long, because the server's own timeout limits how long the server may take to start.
    timeoutMs: outerTimeoutMs,
    async run({ agent_id, server, names = [], pattern, max_schema_tokens: budget }, { call }) {
      const requested = names.length || undefined
      const view = access.view(asAgent(call, agent_id))
      let available = usableTools(view, server)
      if (available.length === 0) {
        await view.started(server, waitFor(call))
        available = usableTools(view, server)
      }
      const problem = available.length === 0 ? whyEmpty(view, server) : undefined
      if (problem) return refusedListing(server, problem, requested)
      // Many models fill arguments that they do not need with [], "" or 0.
      const wanted = new Set(names)
      const matches = pattern ? compilePattern(pattern) : undefined
      const asked = available.filter(
        ({ entry }) => (wanted.size === 0 || wanted.has(seenName(entry))) && (matches?.(seenName(entry)) ?? true),
      )
      const { kept, tokens } = fittingTools(budget || Number.POSITIVE_INFINITY, asked)
      const answer = {
        tools: kept.map(toolUsage),
        server,
        total_available: available.length,
        returned: kept.length,
        tokens_used: budget ? tokens : null,
        truncated: kept.length < asked.length,
      }
      const listing = { requested, available: available.length, returned: kept.length, tokens }
      return { ...structuredResult(answer), listing }
    },
  })

/** The tools before the first one that does not fit into the budget. The caller can request the rest by name. */
function fittingTools(budget: number, asked: readonly Served[]): { kept: readonly Served[]; tokens: number } {
  let tokens = 0
  for (const [index, { entry }] of asked.entries()) {
    const cost = tokensOf(seenName(entry), entry.definition)
    if (tokens + cost > budget) return { kept: asked.slice(0, index), tokens }
    tokens += cost
  }
  return { kept: asked, tokens }
}

/** The reason why a server lists no tools, if any. Without a reason, an empty list would look like success. */
function whyEmpty(view: View, server: string): ToolwayError | undefined {
  const status = view.servers().find(({ name }) => name === server)?.status
  if (!status) return view.refusal(server) ?? serverNotFound(view, server)
  if (status.health === 'needs-auth') return new ToolwayError('AUTH_REQUIRED', status.reason, { server })
  const reason = status.reason === '' ? '' : ` (${status.reason})`
  if (status.health === 'starting' || status.health === 'stale') {
    const sentence = `The server "${server}" is still starting${reason}, so its tools are not known yet; try again soon.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { server })
  }
  if (status.health === 'disabled')
    return new ToolwayError('SERVER_DISABLED', `The server "${server}" is disabled${reason}.`, { server })
  if (status.health !== 'unhealthy') return view.refusal(server, 'tool')
  const sentence = `The server "${server}" is unhealthy${reason}, and its tools are not known; call server_health for details.`
  return new ToolwayError('SERVER_UNHEALTHY', sentence, { server })
}

/** The result for a refused request. It has the fields of a successful result, so that scripts need no special case. */
function refusedListing(server: string, problem: ToolwayError, requested: number | undefined): Result {
  const { data, message } = problem
  const error = { ...data, message }
  const answer = { tools: [], server, total_available: 0, returned: 0, tokens_used: null, truncated: false, error }
  const content = [{ type: 'text', text: JSON.stringify(answer) }]
  const body = { content, structuredContent: answer, isError: true, _meta: { 'dev.toolway/error': data } }
  return { ...resultOf(body), refusal: problem, listing: { requested, returned: 0 } }
}

const listToolsInput = z.object({
  agent_id: agentId,
  server: z.string().optional().describe('A name from list_servers; all servers if absent.'),
  detail: z.enum(['names', 'brief']).default('brief').describe('"names" lists only server.tool.'),
})

export const listToolsTool = (options: MetaToolsOptions): Tool =>
  defineTool({
    name: 'list_tools',
    title: 'List tools',
    description:
      'Lists the tools on one server or all servers, with a name and one line each, without schemas. With ' +
      'hundreds of tools, find_tool uses fewer tokens.',
    input: listToolsInput,
    readOnly: true,
    timeoutMs: outerTimeoutMs,
    async run({ agent_id, server, detail }, { call }) {
      const view = await startedView(options, call, { agent_id, server })
      const tools = usableTools(view, server).map<unknown>(detail === 'names' ? nameOnly : briefly)
      const missing = missingFrom(view, server)
      const answer = { tools, total: tools.length, missing: missing.length > 0 ? missing : undefined }
      return listResult(answer, { returned: tools.length })
    },
  })

const findToolInput = z.object({
  agent_id: agentId,
  query: z
    .string()
    .min(1)
    .max(1000)
    .describe('What the tool should do, such as "read a text file". For several steps, write one sentence each.'),
  limit: z.int().min(1).max(50).default(5).describe('Maximum number of matches.'),
  server: z.string().optional().describe('Only tools on this server.'),
  detail: z
    .enum(['names', 'brief', 'full'])
    .default('brief')
    .describe('"names" lists only server.tool; "full" adds the whole description and the inputSchema.'),
})

/** The tool search, listed as `find_tool`; code mode lists it as `search_tools`. */
export const findTool = (options: MetaToolsOptions): Tool =>
  defineTool({
    name: 'find_tool',
    aliases: ['search_tools'],
    title: 'Find a tool',
    description: findToolDescription,
    input: findToolInput,
    readOnly: true,
    timeoutMs: outerTimeoutMs,
    async run({ agent_id, query, limit, server, detail }, { call }) {
      const view = await startedView(options, call, { agent_id, server })
      const found = await view.search(query, { limit, server })
      options.searched?.(options.asAgent(call, agent_id), query, found.tools)
      const matches = found.tools.map<unknown>(detailForms[detail])
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
const findToolDescription = (servers: readonly ServerSummary[], name: string) =>
  'Searches the tools on all servers for a task, best match first. Use it whenever none of the tools you see fits, and ' +
  `before you say that something cannot be done. ${name === 'search_tools' ? inPrograms : byCall}${serversSentence(servers)}`

const byCall = 'Then run a match with execute_tool(server, name, args); detail "full" adds its inputSchema.'
const inPrograms =
  'Then get the declaration of a match with describe_tools and call it in execute_code as tools.server.name(args).'

/** What a model needs to call a tool of a known server. */
const toolUsage = ({ entry, definition, isPortable }: Served) => ({
  name: seenName(entry),
  description: entry.definition.description ?? '',
  inputSchema: (isPortable ? definition : entry.definition).inputSchema ?? { type: 'object' },
})

const full = (served: Served) => ({
  server: served.entry.server,
  ...toolUsage(served),
  ...(served.entry.traits.readOnly && { readOnly: true }),
})

const detailForms = { names: nameOnly, brief: briefly, full }

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
  const known = new Set(tools.flatMap(({ entry }) => wordsOfText(seenName(entry))))
  const near = wordsOfText(query)
    .slice(0, maxCompared)
    .flatMap((word) => nearMisses(word, known))
  return [...new Set(near)].slice(0, 3).map((word) => `"${word}"`)
}

const wordsOfText = (text: string): string[] =>
  text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]{3,}/gu) ?? []

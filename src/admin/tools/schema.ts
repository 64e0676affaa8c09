import * as z from 'zod'
import { serverFindingKinds } from '../../core/source-status.ts'
import {
  breakerState,
  failureSchema,
  figures,
  health,
  tokenAccountSchema,
  type ViewOf,
  view,
} from '../overview/schema.ts'
import { pinWord } from '../pins/schema.ts'

const serverFindingSchema = view(
  'ServerFinding',
  'Something that a server sent and that was shortened, left out or refused.',
  {
    kind: z.enum(serverFindingKinds),
    method: z.string().optional().describe('The MCP method whose result it is about, if known.'),
    message: z.string(),
    count: z.int().min(0).optional().describe('How many entries, texts or results, if known.'),
    limit: z.number().optional(),
    setting: z.string().optional().describe('The setting that changes the limit; a limit without one is fixed.'),
  },
)

/** Shared by the list and the page of a server. */
const serverFields = {
  name: z.string(),
  description: z.string(),
  health,
  reason: z.string().describe('Why the server is in this state; may be empty.'),
  since: z.number(),
  transport: z.enum(['stdio', 'http', 'sse', 'in-process']),
  era: z.enum(['legacy', 'modern']).nullable(),
  protocolVersion: z.string().nullable(),
  breaker: breakerState,
  tools: z.int().min(0),
  latencyMs: z.number().nullable(),
  lastError: z.string().nullable(),
  process: z
    .strictObject({ pid: z.int(), startedAt: z.number(), restarts: z.int().min(0) })
    .nullable()
    .describe('The server process; admins only.'),
  calls: figures,
  findings: z.array(serverFindingSchema).describe('What was shortened, left out or refused of what the server sent.'),
  paused: z.boolean().describe('Turned off with POST servers/NAME/disable until the next start.'),
}

export const serverView = view('ServerView', 'A server and its state.', serverFields)
export type ServerView = ViewOf<typeof serverView>

export const refreshedServers = view('RefreshedServers', 'The result of refreshing all servers.', {
  servers: z.int().min(0).describe('How many servers are refreshed.'),
  failed: z.array(z.string()).describe('Those that could not be refreshed.'),
  running: z.int().min(0).describe('How many were still being refreshed when the response was sent.'),
})
export type RefreshedServers = ViewOf<typeof refreshedServers>

export const signInView = view('SignInView', 'The URL to sign in at.', {
  url: z.string().describe('Open it in a browser; the browser is redirected back to this gateway.'),
})
export type SignInView = ViewOf<typeof signInView>

export const grantView = view('GrantView', 'What an authorization server has granted for a server. No tokens.', {
  principal: z.string().nullable().describe('The principal whose grant it is; null if all callers share it.'),
  issuer: z.string().describe('The authorization server.'),
  scopes: z.array(z.string()),
  grantedAt: z.number(),
  expiresAt: z.number().nullable().describe('When the access token expires, if that is known.'),
  renewable: z.boolean().describe('Whether Toolway can renew the token without a sign-in.'),
})
export type GrantView = ViewOf<typeof grantView>

export const signOutRequest = z.strictObject({
  principal: z.string().max(1_000).optional().describe('Delete only the grant of this principal. Default: all.'),
})

const toolFields = {
  name: z.string().describe('The served name.'),
  server: z.string(),
  tool: z.string().describe("The tool's name on its server."),
  title: z.string().nullable(),
  description: z.string(),
  access: z.enum(['read', 'write', 'destructive']),
  tokens: z.int().min(0).describe('Context tokens that the definition uses.'),
  pin: z.enum([...pinWord.options, 'off']),
  quarantined: z.boolean().describe('Whether no model can see it because of its state.'),
  flags: z.array(z.string()).describe('Kinds of suspicious content in the definition.'),
}

const anyMembers = z.record(z.string(), z.unknown())

const toolView = view('ToolView', 'A tool.', toolFields)
export type ToolView = ViewOf<typeof toolView>

export const toolPage = view('ToolPage', 'A page of tools.', {
  tools: z.array(toolView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  nextCursor: z.string().nullable(),
})
export type ToolPage = ViewOf<typeof toolPage>

const permissionSchema = view('Permission', 'Whether an agent may use a tool, and the rule that decides.', {
  agent: z.string(),
  allowed: z.boolean(),
  rule: z.string(),
})
export type ToolPermission = ViewOf<typeof permissionSchema>

export const toolDetail = view('ToolDetail', 'A tool, its definition and the agents that may use it.', {
  ...toolFields,
  definition: anyMembers,
  verbatim: anyMembers
    .optional()
    .describe("The server's definition, if it has hidden characters or an override changes it; admins only."),
  override: z
    .object({ name: z.string().optional(), hidden: z.boolean(), tags: z.array(z.string()) })
    .optional()
    .describe('What the configuration changes (mcpServers.*.tools): the name, whether it is in lists, and its tags.'),
  agents: z.array(permissionSchema).describe('All agents for admins, otherwise those that the user may act as.'),
  calls: figures,
})
export type ToolDetail = ViewOf<typeof toolDetail>

export const overridePreview = view('OverridePreview', 'What models would see of a tool, and what it would cost.', {
  definition: anyMembers,
  tokens: z.int().min(0).describe('Context tokens that the definition would use.'),
  own: z.int().min(0).describe("Context tokens that the server's own definition uses."),
  problems: z.array(z.string()).describe('What would have no effect.'),
})
export type OverridePreview = ViewOf<typeof overridePreview>

const exposureSchema = z.enum(['direct', 'meta', 'both', 'code'])

export const agentTools = view('AgentTools', 'The tools that an agent may use: `name`, `definition`, `entry`.', {
  all: z.array(anyMembers),
  shown: z.record(exposureSchema, z.array(anyMembers)).describe('Those that each exposure mode lists.'),
  expose: exposureSchema.describe("The agent's mode."),
  servers: z.array(anyMembers),
  refusal: failureSchema.nullable().describe('Why the agent may use no tool of `server`.'),
})
export type AgentTools = ViewOf<typeof agentTools>

export const tryResult = view('TryResult', 'The result of a tool call, or why it failed.', {
  call: z.string().describe('The id of the call, for GET calls/ID.'),
  ms: z.number().min(0),
  result: anyMembers.nullable(),
  error: failureSchema.nullable(),
})
export type TryResult = ViewOf<typeof tryResult>

export const agentView = view(
  'AgentView',
  'An agent; `calls` are those since the process started, `stats` has all that are kept.',
  {
    name: z.string(),
    inherits: z.string().nullable(),
    expose: z.string(),
    isDefault: z.boolean(),
    tools: z.int().min(0).describe('The number of tools that the agent may use.'),
    tokens: tokenAccountSchema,
    perMinute: z.number().nullable(),
    concurrency: z.number().nullable(),
    limitsPer: z.enum(['agent', 'client']).describe('Whether its clients share these limits, or each has its own.'),
    calls: figures,
  },
)
export type AgentView = ViewOf<typeof agentView>

export const matrix = view('Matrix', 'Which agent may use which tool; the columns are the agents.', {
  agents: z.array(z.string()),
  rows: z.array(z.strictObject({ server: z.string(), tool: z.string(), allowed: z.array(z.boolean()) })),
  total: z.int().min(0),
  nextCursor: z.string().nullable(),
})
export type Matrix = ViewOf<typeof matrix>

export const whyView = view('WhyView', 'Whether an agent may use a tool, and the rules that were considered.', {
  agent: z.string(),
  server: z.string(),
  tool: z.string(),
  served: z.string().optional().describe("The tool's name for callers, if an override changes it."),
  allowed: z.boolean(),
  rule: z.string(),
  sentence: z.string(),
  decision: anyMembers.describe('With the error code and the reason of a refusal.'),
  considered: z.array(z.looseObject({ rule: z.string(), text: z.string() })).describe('With step, outcome and note.'),
})
export type WhyView = ViewOf<typeof whyView>

const serverOffer = view('ServerOffer', 'A resource, resource template or prompt of a server.', {
  kind: z.enum(['resource', 'template', 'prompt']),
  name: z.string(),
  uri: z.string().nullable().describe('The URI or URI template; null for prompts.'),
  description: z.string(),
})
export type ServerOffer = ViewOf<typeof serverOffer>

const connection = view('ServerConnection', 'An open connection to a server, in this process.', {
  scope: z
    .enum(['shared', 'session', 'call', 'spare'])
    .describe('Who uses it: all callers with the same capabilities, one session, one call, or nobody yet.'),
  pid: z.int().nullable().describe('The process id, if the server is a process of this gateway.'),
  openedAt: z.number().nullable(),
  principal: z.string().nullable().describe('Who it was opened for, if it belongs to one caller.'),
  sessions: z.int().min(0).describe('Open sessions that have used it.'),
  inUse: z.boolean().describe('Whether calls are running on it.'),
})

const event = view('ServerEvent', "Something that happened to a server's processes or connections.", {
  at: z.number(),
  kind: z
    .enum(['started', 'lost', 'failed', 'idle', 'restarted', 'paused', 'resumed'])
    .describe('`lost`: it ended or stopped responding; `failed`: none could be opened; `idle`: closed as unused.'),
  pid: z.int().nullable(),
  reason: z.string().nullable(),
  times: z.int().min(1).describe('How many times in a row it happened, of which `at` is the last.'),
})

export const serverDetail = view('ServerDetail', 'A server, what it offers, its connections, history and output.', {
  ...serverFields,
  launch: z.string().nullable().describe('The command line or URL, without secrets; admins only.'),
  callsSince: z.number().describe('The start of the period that `calls` covers.'),
  toolTokens: z.int().min(0).describe('Context tokens that the definitions of all its tools use.'),
  offers: z.array(serverOffer).describe('Its resources, resource templates and prompts; at most 500.'),
  connections: z
    .strictObject({ total: z.int().min(0), open: z.array(connection) })
    .nullable()
    .describe('The open connections of this process, of which at most 100 are listed; admins only.'),
  events: z
    .array(event)
    .describe('Starts, exits, failures and operator actions in this process, newest first, at most 100; admins only.'),
  stderr: z
    .array(z.strictObject({ at: z.number(), text: z.string() }))
    .describe('The last 200 lines of stderr, oldest first, redacted; admins only.'),
})
export type ServerDetail = ViewOf<typeof serverDetail>

export const searchQuery = z.strictObject({
  q: z.string().min(1).max(200).describe('Words that must all occur; their letters may have others between them.'),
})

const searchHit = view('SearchHit', 'A server, tool, agent or call.', {
  kind: z.enum(['server', 'tool', 'agent', 'call']),
  name: z.string().describe("The server's, tool's or agent's name, or the call's id."),
  detail: z.string(),
})
export type SearchHit = ViewOf<typeof searchHit>

export const searchResult = view('SearchResult', 'What a search found, best first.', {
  hits: z.array(searchHit).describe('At most 20.'),
})
export type SearchResult = ViewOf<typeof searchResult>

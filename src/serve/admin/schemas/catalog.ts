import * as z from 'zod'
import { serverFindingKinds } from '../../../core/source-status.ts'
import { breakerState, figures, health, named, tokenAccount, type ViewOf } from './figures.ts'

const serverFinding = named(
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
export const serverFields = {
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
  findings: z.array(serverFinding).describe('What was shortened, left out or refused of what the server sent.'),
  paused: z.boolean().describe('Disabled with POST servers/NAME/disable until the next start.'),
}

export const serverView = named('ServerView', 'A server and its state.', serverFields)
export type ServerView = ViewOf<typeof serverView>

export const signInView = named('SignInView', 'The URL to sign in at.', {
  url: z.string().describe('Open it in a browser; the browser is redirected back to this gateway.'),
})
export type SignInView = ViewOf<typeof signInView>

const toolFields = {
  name: z.string().describe('The served name.'),
  server: z.string(),
  tool: z.string().describe("The tool's name on its server."),
  title: z.string().nullable(),
  description: z.string(),
  access: z.enum(['read', 'write', 'destructive']),
  tokens: z.int().min(0).describe('Context tokens that the definition uses.'),
  pin: z.enum(['new', 'pinned', 'changed', 'quarantined', 'off']),
  flags: z.array(z.string()).describe('Kinds of suspicious content in the definition.'),
}

const anything = z.record(z.string(), z.unknown())

const toolView = named('ToolView', 'A tool.', toolFields)
export type ToolView = ViewOf<typeof toolView>

export const toolPage = named('ToolPage', 'A page of tools.', {
  tools: z.array(toolView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  nextCursor: z.string().nullable(),
})
export type ToolPage = ViewOf<typeof toolPage>

const permission = named('Permission', 'Whether an agent may use a tool, and the rule that decides.', {
  agent: z.string(),
  allowed: z.boolean(),
  rule: z.string(),
})
export type ToolPermission = ViewOf<typeof permission>

export const toolDetail = named('ToolDetail', 'A tool, its definition and the agents that may use it.', {
  ...toolFields,
  definition: anything,
  agents: z.array(permission).describe('All agents for admins, otherwise those that the user may act as.'),
  calls: figures,
})
export type ToolDetail = ViewOf<typeof toolDetail>

export const tryResult = named('TryResult', 'The result of a tool call, or why it failed.', {
  call: z.string().describe('The id of the call, for GET calls/ID.'),
  ms: z.number().min(0),
  result: anything.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string(), rule: z.string().optional() }).nullable(),
})
export type TryResult = ViewOf<typeof tryResult>

export const agentView = named('AgentView', 'An agent.', {
  name: z.string(),
  inherits: z.string().nullable(),
  expose: z.string(),
  isDefault: z.boolean(),
  tools: z.int().min(0).describe('The number of tools that the agent may use.'),
  tokens: tokenAccount,
  perMinute: z.number().nullable(),
  concurrency: z.number().nullable(),
  calls: figures,
})
export type AgentView = ViewOf<typeof agentView>

export const matrix = named('Matrix', 'Which agent may use which tool; the columns are the agents.', {
  agents: z.array(z.string()),
  rows: z.array(z.strictObject({ server: z.string(), tool: z.string(), allowed: z.array(z.boolean()) })),
  total: z.int().min(0),
  nextCursor: z.string().nullable(),
})
export type Matrix = ViewOf<typeof matrix>

export const whyView = named('WhyView', 'Whether an agent may use a tool, and the rules that were considered.', {
  agent: z.string(),
  server: z.string(),
  tool: z.string(),
  allowed: z.boolean(),
  rule: z.string(),
  sentence: z.string(),
  considered: z.array(z.strictObject({ rule: z.string(), text: z.string() })),
})
export type WhyView = ViewOf<typeof whyView>

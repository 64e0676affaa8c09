import * as z from 'zod'
import { maxResultTokens } from './resilience.ts'
import { address, duration, flag, names, numeric, path, text, textLike } from './values.ts'

const tool = 'a tool as server.tool (* is a wildcard)'

export const policySection = z.strictObject({
  allowedServers: names('a server or a pattern with *').default(['*']).describe('Servers that may be used.'),
  allowedTools: names(tool)
    .default([])
    .describe('If not empty, only these tools are allowed (server.tool, wildcards).'),
  blockedTools: names(tool).default([]).describe('Tools that are blocked for everyone (server.tool, wildcards).'),
  requireAuth: names(tool).default([]).describe('Tools for authenticated callers only (server.tool, wildcards).'),
  toolsNeedServer: flag()
    .prefault(false)
    .describe(
      "Whether an agent's allow.tools apply only to servers that its allow.servers (or its parent's) list as well; set when agent gateway rules are imported.",
    ),
  hideDenied: flag()
    .prefault(false)
    .describe('Reports denied servers and tools as not found. The audit log records the denial.'),
  pins: z
    .enum(['off', 'warn', 'quarantine'])
    .default('warn')
    .describe("What to do when a tool's definition is new, changed or flagged."),
})

const rules = z
  .strictObject({
    servers: names('a server or a pattern with *').default([]).describe('Servers, or patterns with *.'),
    tools: z
      .record(z.string(), names('a tool or a pattern with *'))
      .default({})
      .describe('Tools by server, or patterns with *.'),
  })
  .prefault({})

/** The tools that an agent sees: all tools, the meta-tools, both, or the code mode tools. */
export const exposure = z.enum(['auto', 'direct', 'meta', 'both', 'code'])

/** How tool definitions are written for callers. */
export const schemas = z.enum(['verbatim', 'portable'])

/** Tools that clients should load at once. */
export const alwaysLoad = () => names(tool)

/** A list of people who may answer approvals. */
export const approvers = () => names('admins, client, own, a principal such as key:alice, or the id of an API key')

const agent = z.strictObject({
  allow: rules.describe('What the agent may use; everything else is denied.'),
  deny: rules.describe('What the agent may not use; overrides allow.'),
  readOnly: flag()
    .optional()
    .describe(
      'Allows reads only: tools not known to be read-only are hidden and denied. Inherited; a child cannot turn it off.',
    ),
  approve: names(`${tool}, or writes`)
    .optional()
    .describe(
      "Tools that need a person's approval (server.tool, wildcards); writes means all tools that may change something. Inherited; a child cannot remove any.",
    ),
  approvers: approvers().optional().describe('Who may answer for approve. Default: approvals.by.'),
  expose: exposure.optional().describe('How the agent sees tools. Default: defaults.expose.'),
  schemas: schemas
    .optional()
    .describe('verbatim, or portable: rewritten into what all model APIs accept. Inherited. Default: schemas.'),
  alwaysLoad: alwaysLoad()
    .optional()
    .describe('Tools that are listed in every mode, and that clients with a tool search load at once. Inherited.'),
  perMinute: numeric({ min: 1 }).optional().describe('Calls per minute.'),
  concurrency: numeric({ min: 1 }).optional().describe('Maximum calls in flight.'),
  results: z
    .strictObject({ maxTokens: maxResultTokens().optional().describe('Maximum tokens of a result; 0: no limit.') })
    .optional()
    .describe('Limits for the length of results. Inherited. Default: results.maxTokens.'),
  capture: flag()
    .optional()
    .describe("Keeps the arguments and results of the agent's calls for the dashboard, redacted. Inherited."),
  debug: flag().optional().describe('Offers get_gateway_status to the agent. Default: defaults.debug.'),
})

/** Rules for each agent. An agent named `team.role` inherits from `team`. */
export const agentsSection = z.record(
  textLike(/^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/, 'a name of up to 128 letters, digits and _ . : @ / -'),
  agent,
)

/** Groups of tools, each served at a path of its own. */
export const endpointsSection = z.record(
  textLike(
    /^(?!stream$|server-card$)[a-z0-9][a-z0-9_-]{0,63}$/,
    'a name of up to 64 lower-case letters, digits, _ and -, but not stream or server-card',
  ),
  z.strictObject({
    description: z.string().optional().describe('What it is for, shown to the people who connect clients.'),
    servers: names('a server or a pattern with *').default([]).describe('Servers that it serves completely.'),
    tools: z
      .record(z.string(), names('a tool or a pattern with *'))
      .default({})
      .describe('Tools that it serves, by server; without servers and tools, it serves everything.'),
    agent: text('the name of an agent').optional().describe('The agent that all its callers act as.'),
    expose: exposure.optional().describe("How clients see its tools. Default: the agent's mode."),
  }),
)

/** Calls that wait for a person. */
export const approvalsSection = z.strictObject({
  wait: duration({ least: '1s', most: '1d' }).prefault('5m').describe('How long a call waits for an answer.'),
  by: approvers()
    .default(['admins', 'client'])
    .describe(
      'Who may answer: admins; client (the user of the calling client, if it supports elicitation); own (the holder of the credential that made the call); a principal; or the id of an API key.',
    ),
  webhook: address('http', 'https')
    .meta({ secret: 'address' })
    .optional()
    .describe('URL that gets a POST for each new approval, without the arguments.'),
})

const perMinute = numeric({ min: 1 })

/** Limits for calls. Calls per minute are unlimited unless configured. */
export const limitsSection = z.strictObject({
  per: z
    .enum(['agent', 'client'])
    .default('agent')
    .describe(
      'Who has a limit for itself, here and in agents. agent: all clients of an agent share it; client: each principal, such as an API key, has its own.',
    ),
  perMinute: perMinute.optional().describe('Calls per minute to servers and tools that have no limit of their own.'),
  servers: z
    .record(z.string(), perMinute)
    .default({})
    .describe('Calls per minute by server; * limits each server that has no line here, but no built-in tools.'),
  tools: z.record(z.string(), perMinute).default({}).describe('Calls per minute for each tool (server.tool).'),
  queue: numeric()
    .prefault(256)
    .describe('Maximum number of queued calls; a caller without admin rights may have half of them.'),
  concurrency: numeric({ min: 1 })
    .prefault(256)
    .describe('Maximum calls in flight; a caller without admin rights may have three quarters of them.'),
})

const guarded = names('an argument such as path, paths[] or options.file').describe(
  'Arguments to check; [] means every item of a list.',
)

const pathGuard = z.strictObject({
  kind: z.literal('path').describe('Restricts paths to allowed folders.'),
  arguments: guarded,
  roots: z.array(path()).min(1).describe('Allowed folders; symbolic links are resolved.'),
})

const sqlGuard = z.strictObject({
  kind: z.literal('sql').describe('Allows only a single SQL statement that can be parsed.'),
  arguments: guarded,
  dialect: z
    .enum(['any', 'postgres', 'mysql', 'sqlite'])
    .default('any')
    .describe('SQL dialect. any: unknown; only statements that every database reads in the same way are allowed.'),
  readOnly: flag().prefault(true).describe('Denies all statements except reads.'),
})

const urlGuard = z.strictObject({
  kind: z.literal('url').describe('Blocks private addresses.'),
  arguments: guarded,
  allowPrivate: flag().prefault(false).describe('Allows private and loopback addresses.'),
})

export const guard = z.discriminatedUnion('kind', [pathGuard, sqlGuard, urlGuard])

import * as z from 'zod'
import { flag, names, numeric, path, textLike } from './values.ts'

const tool = 'a tool as server.tool, with * where it helps'

export const policySection = z.strictObject({
  allowedServers: names('a server or a pattern with *').default(['*']).describe('Servers that may be used at all.'),
  allowedTools: names(tool).default([]).describe('Where not empty: only these tools (server.tool, wildcards).'),
  blockedTools: names(tool).default([]).describe('Tools that nobody may use (server.tool, wildcards).'),
  requireAuth: names(tool).default([]).describe('Tools for authenticated callers only (server.tool, wildcards).'),
  toolsNeedServer: flag()
    .prefault(false)
    .describe(
      "Whether an agent's allow.tools count only for servers that its allow.servers (or its parent's) list too; rules of an agent gateway set it.",
    ),
  hideDenied: z
    .boolean()
    .default(false)
    .describe('Answer as if a server or tool that the caller may not use did not exist. Audit records the denial.'),
  pins: z
    .enum(['off', 'warn', 'quarantine'])
    .default('warn')
    .describe('What happens when the definition of a tool changes.'),
})

const rules = z
  .strictObject({
    servers: names('a server or a pattern with *').default([]).describe('Servers, or patterns with *.'),
    tools: z
      .record(z.string(), names('a tool or a pattern with *'))
      .default({})
      .describe('Tools of each server, or patterns with *.'),
  })
  .prefault({})

/** How an agent sees tools: all of them, the meta-tools, both, or the code mode tools. */
export const exposure = z.enum(['direct', 'meta', 'both', 'code'])

const agent = z.strictObject({
  allow: rules.describe('What the agent may use; everything else is denied.'),
  deny: rules.describe('What it may not use, whatever is allowed.'),
  readOnly: flag()
    .optional()
    .describe(
      'Lets it read only: what is not known to be a read is refused and not listed. Inherited; cannot be undone.',
    ),
  expose: exposure.optional().describe('How it sees tools; defaults.expose otherwise.'),
  perMinute: numeric({ min: 1 }).optional().describe('Calls a minute.'),
  concurrency: numeric({ min: 1 }).optional().describe('Calls in flight.'),
  debug: flag().optional().describe('Shows get_gateway_status to it; defaults.debug otherwise.'),
})

/** `team.role` inherits from `team`. */
export const agentsSection = z.record(
  textLike(/^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/, 'a name of up to 128 letters, digits and _ . : @ / -'),
  agent,
)

const perMinute = numeric({ min: 1 })

/** Calls per minute are unlimited unless configured. */
export const limitsSection = z.strictObject({
  perMinute: perMinute.optional().describe('Calls a minute of each agent, to whatever has no limit of its own.'),
  servers: z.record(z.string(), perMinute).default({}).describe('Calls a minute by server.'),
  tools: z.record(z.string(), perMinute).default({}).describe('Calls a minute by server.tool.'),
  queue: numeric().prefault(256).describe('Calls that may wait for a free place.'),
  concurrency: numeric({ min: 1 }).prefault(256).describe('Calls in flight.'),
})

const guarded = names('an argument such as path, paths[] or options.file').describe(
  'Which arguments are checked; [] stands for every item of a list.',
)

const pathGuard = z.strictObject({
  kind: z.literal('path').describe('Keeps file names inside allowed folders.'),
  arguments: guarded,
  roots: z.array(path()).min(1).describe('Folders that a path may lie in, symbolic links resolved.'),
})

const sqlGuard = z.strictObject({
  kind: z.literal('sql').describe('Lets one parsed SQL statement through.'),
  arguments: guarded,
  dialect: z
    .enum(['any', 'postgres', 'mysql', 'sqlite'])
    .default('any')
    .describe(
      'Dialect of the database. any: it is not known, so only statements that every common database reads alike pass.',
    ),
  readOnly: flag().prefault(true).describe('Refuses everything that is not a read.'),
})

const urlGuard = z.strictObject({
  kind: z.literal('url').describe('Keeps requests away from private addresses.'),
  arguments: guarded,
  allowPrivate: flag().prefault(false).describe('Lets private and loopback addresses through.'),
})

export const guard = z.discriminatedUnion('kind', [pathGuard, sqlGuard, urlGuard])

import * as z from 'zod'
import { flag, names } from './values.ts'

const tool = 'a tool as server.tool, with * where it helps'

/** Rules that hold for every agent. */
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

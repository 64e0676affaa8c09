import * as z from 'zod'
import { flag, names, numeric, textLike } from './values.ts'

const rules = z
  .strictObject({
    servers: names('a server or a pattern with *').default([]).describe('Servers, or patterns with *.'),
    tools: z
      .record(z.string(), names('a tool or a pattern with *'))
      .default({})
      .describe('Tools of each server, or patterns with *.'),
  })
  .prefault({})

/** How an agent sees tools: all of them, the meta-tools, both, or the tools of code mode. */
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

/** Rules per agent; `team.role` inherits from `team`. */
export const agentsSection = z.record(
  textLike(/^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,127}$/, 'a name of up to 128 letters, digits and _ . : @ / -'),
  agent,
)

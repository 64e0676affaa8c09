import * as z from 'zod'
import { exposure } from './agents.ts'
import { flag, limit, text } from './values.ts'

/** What holds where nothing more particular is said. */
export const defaultsSection = z.strictObject({
  agent: text('the name of an agent')
    .optional()
    .describe('Agent of a caller that names none; the variable TOOLWAY_DEFAULT_AGENT overrides it.'),
  denyOnMissingAgent: flag().prefault(true).describe('Whether a caller without an agent is refused.'),
  expose: exposure.default('both').describe('How agents see tools: direct, meta, both or code.'),
  timeout: limit()
    .prefault('30s')
    .describe('Time limit of a call. Progress of the server starts it again, up to maxTimeout in all.'),
  maxTimeout: limit()
    .prefault('10m')
    .describe('Time limit of a call whose server reports progress; a longer timeout counts instead of it.'),
  debug: flag().prefault(false).describe('Shows get_gateway_status to everyone.'),
})

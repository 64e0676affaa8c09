import * as z from 'zod'
import { duration } from './values.ts'

/** When servers are asked what they offer. */
export const discoverySection = z.strictObject({
  mode: z
    .enum(['startup', 'runtime', 'hybrid'])
    .default('hybrid')
    .describe(
      'startup: all servers at start; runtime: on first use; hybrid: what is remembered at once, refreshed behind it.',
    ),
  refresh: duration().prefault('60s').describe('How often a server is asked again; 0 never.'),
  listDeadline: duration()
    .optional()
    .describe(
      'How long a list waits for servers that are still starting, counted from the request. Unset: 15 s for a server of which nothing is remembered, 2 s for any other. Calls wait up to their own timeout.',
    ),
})

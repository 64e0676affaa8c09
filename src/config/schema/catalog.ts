import * as z from 'zod'
import { duration, numeric, textLike } from './values.ts'

export const namingSection = z.strictObject({
  strategy: z
    .enum(['prefix', 'flat', 'custom'])
    .default('prefix')
    .describe('prefix: server and tool; flat: the tool alone where nobody else claims it; custom: as in aliases.'),
  separator: textLike(/^[A-Za-z0-9_-]{1,8}$/, 'one to eight letters, digits, _ or -')
    .default('__')
    .describe('Stands between server and tool; the default fits every model vendor.'),
  aliases: z
    .record(
      textLike(/^[^.]+\..+$/, 'a tool as server.tool'),
      textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ or -'),
    )
    .default({})
    .describe('With strategy custom: names by server.tool; what is not listed is named as with prefix.'),
  maxLength: numeric({ min: 16, max: 64 })
    .prefault(64)
    .describe('Longest served name; longer ones are shortened with a hash.'),
})

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

/** Scanning of results; definitions are always scanned. */
export const scanSection = z.strictObject({
  results: z
    .enum(['off', 'warn', 'strip'])
    .default('off')
    .describe(
      'Whether results of tools, resources and prompts are scanned for hidden characters and instructions to the model: `warn` reports and marks them, `strip` also takes hidden characters out.',
    ),
})

import * as z from 'zod'
import { address, duration, isProtectedUrl, numeric, size, textLike } from './values.ts'

export const namingSection = z.strictObject({
  strategy: z
    .enum(['prefix', 'flat', 'custom'])
    .default('prefix')
    .describe('prefix: server and tool; flat: the tool alone if the name is unique; custom: names in aliases.'),
  separator: textLike(/^(?:[A-Za-z0-9_-]{1,8}|::|\.)$/, 'one to eight letters, digits, _ or -, or :: or .')
    .default('__')
    .describe('Separator between server and tool; the default is accepted by all model vendors, :: and . are not.'),
  gateway: textLike(/^[A-Za-z0-9_.-]{1,64}$/, 'a name of up to 64 letters, digits, _ . or -')
    .optional()
    .describe(
      'Name of this gateway that calls may put before a name, as in NAME.server.tool or NAME_server_tool; toolway always works.',
    ),
  aliases: z
    .record(
      textLike(/^[^.]+\..+$/, 'a tool as server.tool'),
      textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ or -'),
    )
    .default({})
    .describe('For strategy custom: names by server.tool; other tools are named as with prefix.'),
  maxLength: numeric({ min: 16, max: 64 })
    .prefault(64)
    .describe('Maximum length of a served name; longer names are shortened with a hash.'),
})

export const discoverySection = z.strictObject({
  mode: z
    .enum(['startup', 'runtime', 'hybrid'])
    .default('hybrid')
    .describe(
      'startup: list each server once, at startup; runtime: on first use, and again for each new conversation; hybrid: use cached lists at once and refresh them in the background.',
    ),
  refresh: duration().prefault('60s').describe('Interval for listing a server again; 0: never.'),
  listDeadline: duration()
    .optional()
    .describe(
      'How long a list request waits for servers that are starting. Default: 8 s for a server without a cached list, 2 s for others. Calls wait up to their own timeout.',
    ),
  maxEntries: numeric({ min: 1 })
    .prefault(10_000)
    .describe('Maximum number of entries in one list of a server (tools, resources, templates or prompts).'),
  maxListSize: size().prefault('16MiB').describe('Maximum size of one list of a server.'),
})

export const registrySection = z.strictObject({
  url: address('http', 'https')
    .refine(isProtectedUrl, { error: 'an https:// URL: a tampered response could inject a command' })
    .meta({ secret: 'address' })
    .optional()
    .describe('URL of an MCP registry whose servers can be added in the dashboard.'),
})

/** Settings for scanning results. Tool definitions are always scanned. */
export const scanSection = z.strictObject({
  results: z
    .enum(['off', 'warn', 'strip'])
    .default('off')
    .describe(
      'Scans tool, resource and prompt results for hidden characters and instructions to the model: `warn` reports and marks them, `strip` also removes hidden characters.',
    ),
})

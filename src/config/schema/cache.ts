import * as z from 'zod'
import { duration, flag, names, numeric, size } from './values.ts'

const tool = 'a tool as server.tool, with * where it helps'

/** Results that are kept for a while. */
export const cacheSection = z.strictObject({
  enabled: flag().prefault(false).describe('Whether results are kept.'),
  ttl: duration().prefault('60s').describe('How long a result is kept.'),
  maxEntries: numeric({ min: 1 }).prefault(1000).describe('Most results kept.'),
  maxBytes: size().prefault('64MiB').describe('Most bytes kept.'),
  tools: names(tool).default([]).describe('Tools whose results are kept, besides trusted read-only ones.'),
  scope: z
    .enum(['principal', 'agent'])
    .default('principal')
    .describe('Who shares results: each principal alone, or all principals that act as the same agent.'),
  shared: names(tool).default([]).describe('Tools whose results all agents and principals share.'),
})

import * as z from 'zod'
import type { Figures, Overview, ReloadView, Series, Stats } from '../contract.ts'
import { fits } from './fits.ts'

const count = z.int().min(0)
const milliseconds = z.number().min(0)

/** The fields of Figures, for what has others beside them. */
const figureFields = {
  calls: count,
  errors: count,
  denials: count,
  perSecond: z.number().min(0),
  averageMs: milliseconds.nullable(),
  p50Ms: milliseconds.nullable(),
  p95Ms: milliseconds.nullable(),
  p99Ms: milliseconds.nullable(),
}

export const figures = fits<Figures>(
  'Figures',
  'Counts and times of a stretch of time. Times are null where nothing was called.',
)(z.strictObject(figureFields))

export const health = z.enum(['healthy', 'degraded', 'unhealthy', 'needs-auth', 'starting', 'stale', 'disabled'])
export const breakerState = z.enum(['closed', 'open', 'half-open'])

export const reloadView = fits<ReloadView>(
  'ReloadView',
  'How taking over changed configurations has gone.',
)(
  z.strictObject({
    attempts: count,
    successes: count,
    lastAt: z.number().nullable(),
    lastError: z.string().nullable(),
  }),
)

export const tokenAccount = z
  .strictObject({ direct: count, exposed: count, saved: count })
  .describe("What the definitions of tools cost a model's context: all of them, those that are shown, the rest.")

export const overview = fits<Overview>(
  'Overview',
  'The gateway as a whole.',
)(
  z.strictObject({
    version: z.string(),
    startedAt: z.number(),
    endpoint: z.string().describe('The URL of the MCP endpoint.'),
    worker: z
      .strictObject({ number: z.int().min(1), of: z.int().min(1) })
      .optional()
      .describe('Whose figures these are, where several workers serve together.'),
    calls: figures,
    inFlight: count,
    queued: count,
    sessions: count,
    cache: z.strictObject({ hits: count, misses: count, joined: count, hitRate: z.number().min(0).max(1).nullable() }),
    tokens: tokenAccount,
    servers: z.strictObject({
      healthy: count,
      degraded: count,
      unhealthy: count,
      'needs-auth': count,
      starting: count,
      stale: count,
      disabled: count,
    }),
    tools: count,
    breakers: z
      .array(z.strictObject({ server: z.string(), state: breakerState, since: z.number() }))
      .describe('Those that are not closed.'),
    reload: reloadView,
  }),
)

export const series = fits<Series>(
  'Series',
  'Figures over time, oldest first.',
)(
  z.strictObject({
    from: z.number(),
    to: z.number(),
    stepMs: z.number().min(1),
    points: z.array(z.strictObject({ ...figureFields, at: z.number(), cacheHits: count, cacheMisses: count })),
  }),
)

export const statsBy = z.enum(['agent', 'server', 'operation', 'tool'])

export const stats = fits<Stats>(
  'Stats',
  'Figures by agent, server, operation or tool.',
)(
  z.strictObject({
    by: statsBy,
    since: z.number(),
    rows: z.array(z.strictObject({ ...figureFields, name: z.string() })),
  }),
)

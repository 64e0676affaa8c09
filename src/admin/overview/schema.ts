import * as z from 'zod'

/** Schemas that the OpenAPI document refers to by name. */
export const namedSchemas = z.registry<{ id: string; description?: string }>()

export const named = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.strictObject(shape).register(namedSchemas, { id, description })

/** Derives a read-only type from a schema, so that no admin API type is declared twice. */
export type ViewOf<Schema extends z.ZodType> = Frozen<z.output<Schema>>

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T

/** A query parameter with a time. */
export const moment = (description: string) =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description)

const name = (description: string) => z.string().max(500).optional().describe(description)

const count = z.int().min(0)
const milliseconds = z.number().min(0)

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

export const figures = named(
  'Figures',
  'Call counts and latencies for a period. Latencies cover neither denials nor cache hits; null if there were no other calls.',
  figureFields,
)
export type Figures = ViewOf<typeof figures>

export const health = z.enum(['healthy', 'degraded', 'unhealthy', 'needs-auth', 'starting', 'stale', 'disabled'])
export type ServerHealth = ViewOf<typeof health>

export const breakerState = z.enum(['closed', 'open', 'half-open'])
export type BreakerView = ViewOf<typeof breakerState>

const reloadView = named('ReloadView', 'Configuration reloads so far.', {
  attempts: count,
  successes: count,
  lastAt: z.number().nullable(),
  lastError: z.string().nullable(),
})
export type ReloadView = ViewOf<typeof reloadView>

export const tokenAccount = z
  .strictObject({ direct: count, exposed: count, saved: count })
  .describe('Context tokens used by all tool definitions, by the exposed ones, and the difference.')
export type TokenAccount = ViewOf<typeof tokenAccount>

const budget = named('Budget', 'One kind of thing that waits or is kept, with its bounds.', {
  name: z.string(),
  used: count,
  limit: count.describe('The bound for all callers together.'),
  perCaller: count.describe('The bound for one caller; for connections, for one address.'),
  largest: count.describe('The use of the caller that uses most of it.'),
  refused: count.describe('How often something was refused, ended or dropped because a bound was reached.'),
})
export type BudgetView = ViewOf<typeof budget>

export const overview = named('Overview', 'Summary of the gateway.', {
  version: z.string(),
  startedAt: z.number(),
  endpoint: z.string().describe('The URL of the MCP endpoint.'),
  worker: z
    .strictObject({ number: z.int().min(1), of: z.int().min(1) })
    .optional()
    .describe('The worker that answered, if there are several.'),
  calls: figures,
  inFlight: count,
  queued: count,
  sessions: count,
  budgets: z.array(budget).describe('Empty for users who may not see the figures of all agents.'),
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
  unhealthy: count.describe('Servers that are unhealthy, degraded or need a sign-in.'),
  tools: count,
  breakers: z
    .array(z.strictObject({ server: z.string(), state: breakerState, since: z.number() }))
    .describe('Circuit breakers that are not closed.'),
  reload: reloadView,
})
export type Overview = ViewOf<typeof overview>

export const series = named('Series', 'Statistics over time, oldest first. Steps without calls are included.', {
  from: z.number(),
  to: z.number(),
  stepMs: z.number().min(1),
  points: z.array(
    z.strictObject({
      ...figureFields,
      at: z.number(),
      toolErrors: count.describe('The errors that tools reported themselves.'),
      cacheHits: count,
      cacheMisses: count,
      hitMs: milliseconds.nullable().describe('Average duration of the calls that were answered from the cache.'),
      gap: z.literal(true).optional().describe('Set if Toolway did not run, so that the zeros mean nothing.'),
    }),
  ),
})
export type Series = ViewOf<typeof series>

export const seriesQuery = z.strictObject({
  from: moment('Start; one hour before the end by default.'),
  to: moment('End; now by default.'),
  server: name('Calls to this server only. Needs the history.'),
  tool: name('Calls to this tool of the server only.'),
})
export type SeriesQuery = ViewOf<typeof seriesQuery>

const statsBy = z.enum(['agent', 'server', 'operation', 'agent-operation', 'tool'])

export const stats = named(
  'Stats',
  'Statistics by agent, server, operation, agent and operation, or tool. Meta-tools are operations of their own.',
  {
    by: statsBy,
    since: z.number().describe('Start of the period that the figures cover: at most as far back as anything is kept.'),
    to: z.number().describe('End of the period.'),
    rows: z.array(z.strictObject({ ...figureFields, name: z.string() })),
  },
)
export type Stats = ViewOf<typeof stats>

export const statsQuery = z.strictObject({
  by: statsBy.describe('What to group by.'),
  from: moment('Start, in whole steps of 10 s, a minute or an hour; as far back as anything is kept by default.'),
  to: moment('End; now by default.'),
})
export type StatsQuery = ViewOf<typeof statsQuery>

export const sessionView = named('SessionView', 'The authenticated user and their rights.', {
  principal: z.string(),
  agent: z.string(),
  authenticated: z.boolean(),
  admin: z
    .boolean()
    .describe('Whether the user is an admin; other users have read-only access to what their agent may use.'),
  agents: z.union([z.array(z.string()), z.literal('*')]).describe('The agents that the user may act as.'),
})
export type SessionView = ViewOf<typeof sessionView>

export const reloadEvent = named('ReloadEvent', 'One attempt to reload the configuration.', {
  at: z.number(),
  ok: z.boolean(),
  error: z.string().nullable(),
  changes: z.array(z.string()).describe('What changed, in words, such as "server memory added".'),
})
export type ReloadEvent = ViewOf<typeof reloadEvent>

export const configView = named('ConfigView', 'The effective configuration without secrets.', {
  files: z.array(z.strictObject({ path: z.string(), dialect: z.string() })),
  config: z.record(z.string(), z.unknown()),
  warnings: z.array(z.string()),
  reload: reloadView,
  history: z.array(reloadEvent).describe('Newest first.'),
})
export type ConfigView = ViewOf<typeof configView>

export const failure = z
  .looseObject({ code: z.string(), message: z.string() })
  .describe('Why something failed. May have the `rule` and the `server`, and `retryAfterMs`.')
export type Failure = ViewOf<typeof failure>

export const adminError = named('AdminError', 'Why a request failed.', { error: failure })
export type AdminError = ViewOf<typeof adminError>

import * as z from 'zod'

/** Schemas that the OpenAPI document refers to by name. */
export const schemaRegistry = z.registry<{ id: string; description?: string }>()

export const view = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.strictObject(shape).register(schemaRegistry, { id, description })

/** Derives a read-only type from a schema, so that no admin API type is declared twice. */
export type ViewOf<Schema extends z.ZodType> = Frozen<z.output<Schema>>

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T

export const timeParameter = (description: string) =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description)

const nameParameter = (description: string) => z.string().max(500).optional().describe(description)

const countSchema = z.int().min(0)
const milliseconds = z.number().min(0)

const figureFields = {
  calls: countSchema,
  errors: countSchema,
  denials: countSchema,
  perSecond: z.number().min(0),
  averageMs: milliseconds.nullable(),
  p50Ms: milliseconds.nullable(),
  p95Ms: milliseconds.nullable(),
  p99Ms: milliseconds.nullable(),
}

export const figures = view(
  'Figures',
  'Call counts and latencies for a period. Latencies cover neither denials nor cache hits; null if there were no other calls.',
  figureFields,
)
export type Figures = ViewOf<typeof figures>

export const health = z.enum(['healthy', 'degraded', 'unhealthy', 'needs-auth', 'starting', 'stale', 'disabled'])
export type ServerHealth = ViewOf<typeof health>

export const breakerState = z.enum(['closed', 'open', 'half-open'])
export type BreakerView = ViewOf<typeof breakerState>

const reloadViewSchema = view('ReloadView', 'Configuration reloads so far.', {
  attempts: countSchema,
  successes: countSchema,
  lastAt: z.number().nullable(),
  lastError: z.string().nullable(),
})
export type ReloadView = ViewOf<typeof reloadViewSchema>

export const tokenAccountSchema = z
  .strictObject({ direct: countSchema, exposed: countSchema, saved: countSchema })
  .describe('Context tokens used by all tool definitions, by the exposed ones, and the difference.')
export type TokenAccount = ViewOf<typeof tokenAccountSchema>

const budgetSchema = view('Budget', 'One kind of thing that waits or is kept, with its bounds.', {
  name: z.string(),
  used: countSchema,
  limit: countSchema.describe('The bound for all callers together.'),
  perCaller: countSchema.describe('The bound for one caller; for connections, for one address.'),
  largest: countSchema.describe('The use of the caller that uses most of it.'),
  refused: countSchema.describe('How often something was refused, ended or dropped because a bound was reached.'),
})
export type BudgetView = ViewOf<typeof budgetSchema>

export const overview = view('Overview', 'Summary of the gateway.', {
  version: z.string(),
  startedAt: z.number(),
  endpoint: z.string().describe('The URL of the MCP endpoint.'),
  worker: z
    .strictObject({ number: z.int().min(1), of: z.int().min(1) })
    .optional()
    .describe('The worker that answered, if there are several.'),
  calls: figures,
  inFlight: countSchema,
  queued: countSchema,
  sessions: countSchema,
  budgets: z.array(budgetSchema).describe('Empty for users who may not see the figures of all agents.'),
  cache: z.strictObject({
    hits: countSchema,
    misses: countSchema,
    joined: countSchema,
    hitRate: z.number().min(0).max(1).nullable(),
  }),
  tokens: tokenAccountSchema,
  servers: z.strictObject({
    healthy: countSchema,
    degraded: countSchema,
    unhealthy: countSchema,
    'needs-auth': countSchema,
    starting: countSchema,
    stale: countSchema,
    disabled: countSchema,
  }),
  unhealthy: countSchema.describe('Servers that are unhealthy, degraded or need a sign-in.'),
  tools: countSchema,
  breakers: z
    .array(z.strictObject({ server: z.string(), state: breakerState, since: z.number() }))
    .describe('Circuit breakers that are not closed.'),
  reload: reloadViewSchema,
})
export type Overview = ViewOf<typeof overview>

export const series = view('Series', 'Statistics over time, oldest first. Steps without calls are included.', {
  from: z.number(),
  to: z.number(),
  stepMs: z.number().min(1),
  points: z.array(
    z.strictObject({
      ...figureFields,
      at: z.number(),
      toolErrors: countSchema.describe('The errors that tools reported themselves.'),
      cacheHits: countSchema,
      cacheMisses: countSchema,
      hitMs: milliseconds.nullable().describe('Average duration of the calls that were answered from the cache.'),
      gap: z.literal(true).optional().describe('Set if Toolway did not run, so that the zeros mean nothing.'),
    }),
  ),
})
export type Series = ViewOf<typeof series>

export const seriesQuery = z.strictObject({
  from: timeParameter('Start; one hour before the end by default.'),
  to: timeParameter('End; now by default.'),
  server: nameParameter('Calls to this server only. Needs the history.'),
  tool: nameParameter('Calls to this tool of the server only.'),
})
export type SeriesQuery = ViewOf<typeof seriesQuery>

const statsBy = z.enum(['agent', 'server', 'operation', 'agent-operation', 'tool'])

export const statsSchema = view(
  'Stats',
  'Statistics by agent, server, operation, agent and operation, or tool. Meta-tools are operations of their own.',
  {
    by: statsBy,
    since: z.number().describe('Start of the period that the figures cover: at most as far back as anything is kept.'),
    to: z.number().describe('End of the period.'),
    rows: z.array(z.strictObject({ ...figureFields, name: z.string() })),
  },
)
export type Stats = ViewOf<typeof statsSchema>

export const statsQuery = z.strictObject({
  by: statsBy.describe('What to group by.'),
  from: timeParameter(
    'Start, in whole steps of 10 s, a minute or an hour; as far back as anything is kept by default.',
  ),
  to: timeParameter('End; now by default.'),
})
export type StatsQuery = ViewOf<typeof statsQuery>

export const sessionView = view('SessionView', 'The authenticated user and their rights.', {
  principal: z.string(),
  agent: z.string(),
  authenticated: z.boolean(),
  admin: z
    .boolean()
    .describe('Whether the user is an admin; other users have read-only access to what their agent may use.'),
  agents: z.union([z.array(z.string()), z.literal('*')]).describe('The agents that the user may act as.'),
})
export type SessionView = ViewOf<typeof sessionView>

export const reloadEvent = view('ReloadEvent', 'One attempt to reload the configuration.', {
  at: z.number(),
  ok: z.boolean(),
  error: z.string().nullable(),
  changes: z.array(z.string()).describe('What changed, in words, such as "server memory added".'),
})
export type ReloadEvent = ViewOf<typeof reloadEvent>

export const configView = view('ConfigView', 'The effective configuration without secrets.', {
  files: z.array(z.strictObject({ path: z.string(), dialect: z.string() })),
  config: z.record(z.string(), z.unknown()),
  warnings: z.array(z.string()),
  reload: reloadViewSchema,
  history: z.array(reloadEvent).describe('Newest first.'),
})
export type ConfigView = ViewOf<typeof configView>

export const failureSchema = z
  .looseObject({ code: z.string(), message: z.string() })
  .describe('Why something failed. May have the `rule` and the `server`, and `retryAfterMs`.')
export type FailureView = ViewOf<typeof failureSchema>

export const adminError = view('AdminError', 'Why a request failed.', { error: failureSchema })
export type AdminError = ViewOf<typeof adminError>

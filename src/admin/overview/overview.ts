import type { Caller } from '../../core/call.ts'
import { isUnhealthy } from '../../core/source-status.ts'
import { tokenAccount } from '../../core/tokens.ts'
import { tokenAccountOfAll } from '../../runtime/generation-queries.ts'
import type { AdminContext } from '../context.ts'
import type { Overview, ReloadView, ServerHealth } from '../contract.ts'
import { type Route, userRoute } from '../router.ts'
import { maySeeAllFigures, visibleServers, visibleTools } from '../tools/visibility.ts'
import type { VisibleFigures } from './figures.ts'
import * as schema from './schema.ts'

export type OverviewService = ReturnType<typeof createOverviewAdmin>

export const createOverviewAdmin = (context: AdminContext, figures: VisibleFigures) => ({
  overview: (caller: Caller) => overviewFor(caller, context, figures),
  series: figures.series,
  stats: figures.stats,
})

/** The gateway's state. Non-admins see only what concerns their own agent. */
function overviewFor(caller: Caller, context: AdminContext, figures: VisibleFigures): Overview {
  const { current, breakers, version, startedAt, worker } = context
  const generation = current()
  const servers = visibleServers(caller, generation)
  const countOf = (health: ServerHealth) => servers.filter(({ status }) => status.health === health).length
  const failing = servers.filter(({ status }) => status.breaker !== 'closed')
  return {
    version,
    startedAt,
    endpoint: context.endpoint(),
    worker: worker && { number: worker.number, of: worker.of },
    calls: figures.lately(caller),
    ...loadFor(caller, context),
    tokens: caller.admin ? tokenAccountOfAll(generation, caller.agent) : tokenAccount(generation.catalog.view(caller)),
    servers: Object.fromEntries(
      schema.health.options.map((health) => [health, countOf(health)]),
    ) as Overview['servers'],
    unhealthy: servers.filter(({ status }) => isUnhealthy(status.health)).length,
    tools: visibleTools(caller, generation).length,
    breakers: failing.map(({ name, status }) => ({
      server: name,
      state: status.breaker,
      since: breakers.stateOf(name).since,
    })),
    reload: viewReloads(context, caller.admin),
  }
}

type Load = Pick<Overview, 'inFlight' | 'queued' | 'sessions' | 'budgets' | 'cache'>

/** The gateway's load. If agents are configured, only admins see other agents' load. */
function loadFor(caller: Caller, context: AdminContext): Load {
  const { bulkhead, budgets, cache, calls, sessions, current } = context
  if (!maySeeAllFigures(caller, current())) {
    const inFlight = calls.list({ agent: caller.agent, outcome: 'running' }, Number.MAX_SAFE_INTEGER).length
    const queued = bulkhead.stats().agents[caller.agent]?.queued ?? 0
    return { inFlight, queued, sessions: 0, budgets: [], cache: { hits: 0, misses: 0, joined: 0, hitRate: null } }
  }
  const { inFlight, queued } = bulkhead.stats()
  const { hits, misses, joined } = cache.stats()
  const hitRate = hits + misses === 0 ? null : hits / (hits + misses)
  return { inFlight, queued, sessions: sessions(), budgets: budgets.report(), cache: { hits, misses, joined, hitRate } }
}

/** The state of configuration reloads. Only admins see the error, because it may quote the configuration. */
export function viewReloads({ reloads, current }: AdminContext, admin: boolean): ReloadView {
  const { attempts, successes } = reloads.status()
  const [latest] = reloads.attempts
  const error = latest?.error ?? null
  const lastError = admin && error !== null ? current().redactor.text(error) : null
  return { attempts, successes, lastAt: latest?.at ?? null, lastError }
}

export const overviewRoutes = (admin: OverviewService): readonly Route[] => [
  userRoute('GET', 'overview', 'Summary of the gateway', {
    answer: schema.overview,
    run: ({ caller }) => admin.overview(caller),
  }),
  userRoute('GET', 'series', 'Statistics over time', {
    query: schema.seriesQuery,
    answer: schema.series,
    run: ({ caller, query }) => admin.series(caller, query),
  }),
  userRoute('GET', 'stats', 'Statistics by agent, server, operation or tool', {
    query: schema.statsQuery,
    answer: schema.statsSchema,
    run: ({ caller, query }) => admin.stats(caller, query),
  }),
]

import type { AuditPageQuery } from '../../audit/reader.ts'
import { marksFolder } from '../../audit/write/head.ts'
import type { AuditListQuery } from '../../serve/admin/contract.ts'
import {
  type AdminEndpointOptions,
  createAdminEndpoint,
  type HttpEndpoint,
  type ListeningServer,
} from '../../serve/admin/endpoint.ts'
import type { AdminService } from '../../serve/admin/service.ts'
import { agentViews, matrixOf, whyFor } from './agents.ts'
import { createAuditQueries, createChainVerification } from './audit-queries.ts'
import { createCallsAdmin, tryTool } from './calls.ts'
import { createConfigAdmin } from './config.ts'
import type { AdminContext } from './context.ts'
import { createFigures } from './figures.ts'
import { createOverview } from './overview.ts'
import { createServersAdmin } from './servers.ts'
import { createToolsAdmin } from './tools.ts'

/** Implements the port of the admin API (`serve/admin`) on top of the gateway. */
function createAdmin(context: AdminContext): AdminService & AsyncDisposable {
  const { audit, calls: recent, current, clock, log } = context
  const figures = createFigures(context)
  const servers = createServersAdmin(context, figures)
  const tools = createToolsAdmin(context, figures)
  const auditQueries = createAuditQueries({
    // The log stays in the folder in which it was opened, even if a reload changes the setting.
    folder: current().loaded.config.audit.path,
    marks: marksFolder(current().loaded.config.stores.path, current().loaded.config.audit.path),
    flushed: () => audit.flushed(),
    ...(context.archive && { archive: context.archive }),
    clock,
  })
  const chain = createChainVerification({ queries: auditQueries, auditKey: context.auditKey, clock, log })
  const calls = createCallsAdmin(context, auditQueries)
  const configuration = createConfigAdmin(context)
  return {
    overview: createOverview(context, figures),
    series: figures.series,
    stats: figures.stats,
    servers: servers.list,
    server: servers.one,
    control: servers.control,
    signIn: servers.signIn,
    signedIn: servers.signedIn,
    tools: tools.list,
    tool: tools.one,
    tryTool: (...asked) => tryTool(context, ...asked),
    calls: calls.list,
    call: calls.one,
    audit: (asked) => auditQueries.search(queryOf(asked)),
    chain: chain.state,
    verifyChain: chain.verify,
    agents: () => agentViews(context),
    matrix: (asked) => matrixOf(context, asked),
    why: (caller, asked) => whyFor(context, caller, asked),
    config: configuration.view,
    lastReload: configuration.last,
    reload: configuration.reload,
    onCalls: recent.subscribe,
    onReload: configuration.onReload,
    [Symbol.asyncDispose]: () => auditQueries[Symbol.asyncDispose](),
  }
}

/** Maps API parameters to those of the search and drops undefined ones. */
function queryOf({ from, to, cursor, decision, limit, ...asked }: AuditListQuery): AuditPageQuery {
  const wanted = { ...asked, since: from, until: to, before: cursor, decision: decision?.toUpperCase() }
  return { ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), limit }
}

export interface AdminRoutesOptions
  extends Omit<AdminContext, 'sessions' | 'endpoint'>,
    Pick<AdminEndpointOptions, 'authenticate' | 'config' | 'metrics' | 'folder'> {}

/** Opened and closed with the HTTP server. */
export const createAdminRoutes =
  (options: AdminRoutesOptions) =>
  ({ url, port, hosts, admit, bodies, sessions, chat }: ListeningServer): HttpEndpoint => {
    const admin = createAdmin({ ...options, sessions, endpoint: () => url })
    const door = createAdminEndpoint({ ...options, admin, admit, bodies, port, hosts, chat })
    return {
      handle: door.handle,
      [Symbol.dispose]() {
        door[Symbol.dispose]()
        // Do not wait for the thread that reads the audit log.
        void admin[Symbol.asyncDispose]()
      },
    }
  }

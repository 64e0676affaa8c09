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
import { createApprovalsAdmin } from './approvals.ts'
import { brokenChain, createAuditQueries, createChainVerification } from './audit-queries.ts'
import { createCallsAdmin } from './calls.ts'
import { createConfigAdmin } from './config.ts'
import { createConfigEditAdmin } from './config-edit.ts'
import type { AdminContext } from './context.ts'
import { createFigures } from './figures.ts'
import { createInboxAdmin } from './inbox-service.ts'
import { createKeysAdmin } from './keys.ts'
import { createOverview } from './overview.ts'
import { createPinsAdmin } from './pins.ts'
import { createPlayground } from './playground.ts'
import { createPolicyAdmin } from './policy.ts'
import { createSearch } from './search.ts'
import { createServersAdmin } from './servers.ts'
import { createToolsAdmin } from './tools.ts'

/** Implements `AdminService`, the interface between the admin API (`serve/admin`) and the gateway. */
function createAdmin(context: AdminContext): AdminService & AsyncDisposable {
  const { audit, archive, calls, current, auditKey, clock, log } = context
  const { stores, audit: auditConfig } = current().loaded.config
  const figures = createFigures(context)
  const auditQueries = createAuditQueries({
    // The log stays in the folder in which it was opened, even if a reload changes the setting.
    folder: auditConfig.path,
    marks: marksFolder(stores.path, auditConfig.path),
    flushed: () => audit.flushed(),
    archive,
    clock,
  })
  const edits = createConfigEditAdmin(context)
  const { loadedWith: _, content: __, ...configEdits } = edits
  const { verified, ...chain } = createChainVerification({ queries: auditQueries, auditKey, clock, log })
  // The item stays while the log is verified again: an item that returns is reported once more.
  const chainItems = context.inbox.add({ items: () => brokenChain(verified()) })
  const { series, stats } = figures
  const playground = createPlayground(context)
  return {
    overview: createOverview(context, figures),
    series,
    stats,
    ...createSearch(context, figures.callsOf),
    ...createServersAdmin(context, figures),
    ...createToolsAdmin(context, figures),
    ...createPinsAdmin(context),
    ...createInboxAdmin(context),
    ...createCallsAdmin(context, auditQueries),
    ...createApprovalsAdmin(context),
    ...playground.admin,
    audit: (query) => auditQueries.search(queryOf(query)),
    ...chain,
    agents: () => agentViews(context),
    matrix: (query) => matrixOf(context, query),
    why: (caller, params) => whyFor(context, caller, params),
    ...createKeysAdmin(context),
    ...createConfigAdmin(context),
    ...configEdits,
    ...createPolicyAdmin(context, edits, auditQueries),
    onCalls: calls.subscribe,
    [Symbol.asyncDispose]() {
      playground[Symbol.dispose]()
      chainItems[Symbol.dispose]()
      return auditQueries[Symbol.asyncDispose]()
    },
  }
}

/** Converts the API's parameters to search parameters. Undefined ones are dropped. */
function queryOf({ from, to, cursor, decision, limit, ...query }: AuditListQuery): AuditPageQuery {
  const wanted = { ...query, since: from, until: to, before: cursor, decision: decision?.toUpperCase() }
  return { ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), limit }
}

export interface AdminRoutesOptions
  extends Omit<AdminContext, 'sessions' | 'endpoint'>,
    Pick<AdminEndpointOptions, 'authenticate' | 'config' | 'metrics' | 'folder' | 'logins'> {}

/** Creates the admin routes for an HTTP server. They are closed with the server. */
export const createAdminRoutes =
  (options: AdminRoutesOptions) =>
  ({ url, port, hosts, admit, bodies, sessions, chat }: ListeningServer): HttpEndpoint => {
    const admin = createAdmin({ ...options, sessions, endpoint: () => url })
    const endpoint = createAdminEndpoint({ ...options, admin, admit, bodies, port, hosts, chat })
    return {
      handle: endpoint.handle,
      [Symbol.dispose]() {
        endpoint[Symbol.dispose]()
        // Do not wait for the thread that reads the audit log.
        void admin[Symbol.asyncDispose]()
      },
    }
  }

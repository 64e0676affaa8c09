import { fileURLToPath } from 'node:url'
import type { AuditPageQuery } from '../audit/reader.ts'
import { marksFolder } from '../audit/write/head.ts'
import type { GatewayParts } from '../runtime/gateway.ts'
import { packageFile, version } from '../runtime/package-paths.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/endpoint.ts'
import { keptAuditKey } from '../stores/secret-file.ts'
import { sharedLogins } from '../stores/ttl-store.ts'
import { createApprovalsAdmin } from './approvals/approvals.ts'
import { brokenChain, createAuditQueries, createChainVerification, uncleanEnd } from './audit/audit-queries.ts'
import { createCallsAdmin } from './calls/calls.ts'
import { createConfigAdmin } from './config/config.ts'
import { createConfigEditAdmin } from './config/config-edit.ts'
import type { AdminContext } from './context.ts'
import type { AuditListQuery } from './contract.ts'
import { createAdminEndpoint } from './endpoint.ts'
import { createInboxAdmin } from './inbox/inbox-service.ts'
import { createKeysAdmin } from './keys/keys.ts'
import { createFigures } from './overview/figures.ts'
import { createOverview } from './overview/overview.ts'
import { createPinsAdmin } from './pins/pins.ts'
import { createPlayground } from './playground/playground.ts'
import { agentViews, matrixOf, whyFor } from './policy/agents.ts'
import { createPolicyAdmin } from './policy/policy.ts'
import { createServersAdmin } from './servers/servers.ts'
import type { AdminService } from './service.ts'
import { createSearch } from './tools/search.ts'
import { createToolsAdmin } from './tools/tools.ts'

/** Implements `AdminService`, the interface between the admin API (routes) and the gateway. */
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
  const { loadedWith: _, content: __, [Symbol.asyncDispose]: closeEdits, ...configEdits } = edits
  const { verified, ...chain } = createChainVerification({ queries: auditQueries, auditKey, clock, log })
  // The item stays while the log is verified again: an item that returns is reported once more.
  const chainItems = context.inbox.add({ items: () => brokenChain(verified()) })
  const unclean = context.inbox.add(uncleanEnd(context, auditQueries))
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
      unclean[Symbol.dispose]()
      return Promise.all([auditQueries[Symbol.asyncDispose](), closeEdits()]).then(() => {})
    },
  }
}

/** Converts the API's parameters to search parameters. Undefined ones are dropped. */
function queryOf({ from, to, cursor, decision, limit, ...query }: AuditListQuery): AuditPageQuery {
  const wanted = { ...query, since: from, until: to, before: cursor, decision: decision?.toUpperCase() }
  return { ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), limit }
}

/** The dashboard's files, built by tooling/build-web.ts. */
const dashboard = fileURLToPath(packageFile('web/dist'))

/** Opens the admin routes of an HTTP server. They are closed with the server. */
export async function openAdminRoutes(
  { processState, config, ...options }: GatewayParts & Pick<AdminContext, 'inbox'>,
  { url, port, hosts, admit, bodies, sessions, chat }: ListeningServer,
): Promise<HttpEndpoint> {
  const { budgets, calls, history, ttlStore, clock, log } = processState
  await history?.restore(calls)
  const admin = createAdmin({
    ...processState,
    ...options,
    sessions,
    endpoint: () => url,
    auditKey: () => keptAuditKey(config.stores.path),
    version,
  })
  const endpoint = createAdminEndpoint({
    ...options,
    admin,
    config: config.server,
    folder: dashboard,
    logins: history && (ttlStore ? sharedLogins(history.logins, ttlStore) : history.logins),
    admit,
    bodies,
    port,
    hosts,
    chat,
    budgets,
    version,
    clock,
    log,
  })
  return {
    handle: endpoint.handle,
    [Symbol.dispose]() {
      endpoint[Symbol.dispose]()
      // Do not wait for the thread that reads the audit log.
      void admin[Symbol.asyncDispose]()
    },
  }
}

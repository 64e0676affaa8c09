import { fileURLToPath } from 'node:url'
import type { AuditPageQuery } from '../../audit/reader.ts'
import { marksFolder } from '../../audit/write/head.ts'
import type { Config } from '../../config/schema.ts'
import type { AuditListQuery } from '../../serve/admin/contract.ts'
import {
  type AdminEndpointOptions,
  createAdminEndpoint,
  type HttpEndpoint,
  type ListeningServer,
} from '../../serve/admin/endpoint.ts'
import type { AdminService } from '../../serve/admin/service.ts'
import { keptAuditKey } from '../../stores/secret-file.ts'
import { sharedLogins } from '../../stores/ttl-store.ts'
import { packageFile, version } from '../package-paths.ts'
import type { ProcessState } from '../process-state.ts'
import { agentViews, matrixOf, whyFor } from './agents.ts'
import { createApprovalsAdmin } from './approvals.ts'
import { brokenChain, createAuditQueries, createChainVerification, uncleanEnd } from './audit-queries.ts'
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

export interface AdminRoutesOptions
  extends Pick<
      AdminContext,
      | 'access'
      | 'cluster'
      | 'current'
      | 'inbox'
      | 'reload'
      | 'sharedApprovals'
      | 'source'
      | 'startedAt'
      | 'why'
      | 'worker'
    >,
    Pick<AdminEndpointOptions, 'authenticate' | 'metrics'> {
  readonly processState: ProcessState
  /** The configuration that the process was started with: its address and its stores stay in use after a reload. */
  readonly config: Config
}

/** The dashboard's files, built by tooling/build-web.ts. */
const dashboard = fileURLToPath(packageFile('web/dist'))

/** Opens the admin routes of an HTTP server. They are closed with the server. */
export async function openAdminRoutes(
  { processState, config, ...options }: AdminRoutesOptions,
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

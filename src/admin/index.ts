import { fileURLToPath } from 'node:url'
import type { GatewayParts } from '../runtime/gateway.ts'
import { packageFile, version } from '../runtime/package-paths.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/router.ts'
import { keptAuditKey } from '../stores/secret-file.ts'
import { sharedLogins } from '../stores/ttl-store.ts'
import { AdminEndpoint } from './endpoint.ts'
import type { Inbox } from './inbox/inbox.ts'
import { createAdmin } from './service.ts'

/** The dashboard's files, built by tooling/build-web.ts. */
const dashboard = fileURLToPath(packageFile('web/dist'))

/** Opens the admin routes of an HTTP server. They are closed with the server. */
export async function openAdminRoutes(
  { processState, config, options, ...parts }: GatewayParts & { readonly inbox: Inbox },
  server: ListeningServer,
): Promise<HttpEndpoint> {
  const { calls, history, ttlStore, clock, log } = processState
  await history?.restore(calls)
  const { admin, close } = createAdmin({
    ...processState,
    ...parts,
    source: options.source,
    worker: options.shared?.identity,
    sessions: server.sessions,
    endpoint: () => server.url,
    auditKey: () => keptAuditKey(config.stores.path),
    version,
  })
  const endpoint = new AdminEndpoint({
    ...parts,
    ...server,
    admin,
    metrics: processState.metricsPages,
    config: config.server,
    folder: dashboard,
    logins: history && (ttlStore ? sharedLogins(history.logins, ttlStore) : history.logins),
    version,
    clock,
    log,
  })
  return {
    handle: (...request) => endpoint.handle(...request),
    [Symbol.dispose]() {
      endpoint[Symbol.dispose]()
      // Do not wait for the thread that reads the audit log.
      void close()
    },
  }
}

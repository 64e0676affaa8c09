import type { LoadedConfig } from '../config/load.ts'
import { createLazy } from '../lib/memoize.ts'
import type { AdminPart, GatewayParts } from '../runtime/gateway.ts'
import { createGateway } from '../runtime/gateway.ts'
import type { Gateway, GatewayOptions } from '../runtime/gateway-api.ts'
import { version } from '../runtime/package-paths.ts'
import type { Inbox } from './inbox/inbox.ts'

export const openGateway = (first: LoadedConfig, options: GatewayOptions): Promise<Gateway> =>
  createGateway(first, options, createAdminPart)

function createAdminPart(parts: GatewayParts): AdminPart {
  const { processState, current } = parts
  /** Opened when the dashboard or a webhook needs it. */
  const inbox = createLazy<Inbox>(async () => {
    const { openInbox } = await import('./inbox/inbox-service.ts')
    return openInbox({ ...processState, current, history: processState.reloads, version })
  })
  return {
    async endpoint(server) {
      // Many gateways never get a request for the dashboard or the admin API.
      const { openAdminRoutes } = await import('./index.ts')
      return openAdminRoutes({ ...parts, inbox: await inbox.get() }, server)
    },
    startInbox() {
      const { log } = processState
      // The next reload or request to the dashboard tries again.
      inbox.get().catch((cause: unknown) => log.error({ err: cause }, 'could not open the inbox (inbox.webhook)'))
    },
    [Symbol.asyncDispose]: async () => (await inbox.loaded())?.[Symbol.dispose](),
  }
}

import type { Route } from '../router.ts'
import { auditRoutes } from './audit.ts'
import { callsRoutes } from './calls.ts'
import { chatRoutes } from './chat.ts'
import { configRoutes } from './config.ts'
import { gatewayRoutes } from './gateway.ts'
import { inboxRoutes } from './inbox.ts'
import { pinsRoutes } from './pins.ts'
import { policyRoutes } from './policy.ts'
import { serversRoutes } from './servers.ts'
import { sessionRoutes } from './session.ts'
import { toolsRoutes } from './tools.ts'

/** All admin API routes. The router and the OpenAPI document are built from this list. */
export const routes: readonly Route[] = [
  ...sessionRoutes,
  ...gatewayRoutes,
  ...inboxRoutes,
  ...serversRoutes,
  ...toolsRoutes,
  ...pinsRoutes,
  ...callsRoutes,
  ...auditRoutes,
  ...policyRoutes,
  ...configRoutes,
  ...chatRoutes,
]

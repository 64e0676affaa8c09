import { approvalsRoutes, auditRoutes, callsRoutes } from './calls/routes.ts'
import { chatRoutes } from './chat/routes.ts'
import { configEditRoutes, configRoutes } from './config/routes.ts'
import { gatewayRoutes, inboxRoutes, searchRoutes } from './overview/routes.ts'
import { keysRoutes, policyRoutes } from './policy/routes.ts'
import type { Route } from './router.ts'
import { serversRoutes } from './servers/routes.ts'
import { sessionRoutes } from './session/routes.ts'
import { pinsRoutes, playgroundRoutes, toolsRoutes } from './tools/routes.ts'

/** All admin API routes. The router and the OpenAPI document are built from this list. */
export const routes: readonly Route[] = [
  ...sessionRoutes,
  ...gatewayRoutes,
  ...inboxRoutes,
  ...searchRoutes,
  ...serversRoutes,
  ...toolsRoutes,
  ...pinsRoutes,
  ...playgroundRoutes,
  ...callsRoutes,
  ...approvalsRoutes,
  ...auditRoutes,
  ...policyRoutes,
  ...keysRoutes,
  ...configRoutes,
  ...configEditRoutes,
  ...chatRoutes,
]

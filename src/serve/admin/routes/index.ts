import type { Route } from '../router.ts'
import { approvalsRoutes, auditRoutes, callsRoutes } from './calls.ts'
import { chatRoutes } from './chat.ts'
import { configEditRoutes, configRoutes } from './config.ts'
import { gatewayRoutes, inboxRoutes, searchRoutes } from './gateway.ts'
import { keysRoutes, policyRoutes } from './policy.ts'
import { serversRoutes } from './servers.ts'
import { sessionRoutes } from './session.ts'
import { pinsRoutes, playgroundRoutes, toolsRoutes } from './tools.ts'

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

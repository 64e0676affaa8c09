import type { Route } from '../router.ts'
import { auditRoutes } from './audit.ts'
import { callsRoutes } from './calls.ts'
import { chatRoutes } from './chat.ts'
import { configRoutes } from './config.ts'
import { gatewayRoutes } from './gateway.ts'
import { policyRoutes } from './policy.ts'
import { searchRoutes } from './search.ts'
import { serversRoutes } from './servers.ts'
import { sessionRoutes } from './session.ts'
import { toolsRoutes } from './tools.ts'

/** All admin API routes. The router and the OpenAPI document are built from this list. */
export const routes: readonly Route[] = [
  ...sessionRoutes,
  ...gatewayRoutes,
  ...searchRoutes,
  ...serversRoutes,
  ...toolsRoutes,
  ...callsRoutes,
  ...auditRoutes,
  ...policyRoutes,
  ...configRoutes,
  ...chatRoutes,
]

import type { Route } from '../router.ts'
import { approvalsRoutes } from './approvals.ts'
import { auditRoutes } from './audit.ts'
import { callsRoutes } from './calls.ts'
import { chatRoutes } from './chat.ts'
import { configRoutes } from './config.ts'
import { configEditRoutes } from './config-edit.ts'
import { gatewayRoutes } from './gateway.ts'
import { inboxRoutes } from './inbox.ts'
import { keysRoutes } from './keys.ts'
import { pinsRoutes } from './pins.ts'
import { playgroundRoutes } from './playground.ts'
import { policyRoutes } from './policy.ts'
import { searchRoutes } from './search.ts'
import { serversRoutes } from './servers.ts'
import { sessionRoutes } from './session.ts'
import { toolsRoutes } from './tools.ts'

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

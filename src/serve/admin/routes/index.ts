import type { Route } from '../route.ts'
import { agentRoutes } from './agents.ts'
import { callRoutes } from './calls.ts'
import { chatRoutes } from './chat.ts'
import { figureRoutes } from './figures.ts'
import { serverRoutes } from './servers.ts'
import { sessionRoutes } from './session.ts'
import { toolRoutes } from './tools.ts'

/** The whole admin API: requests are routed by it, and the document is made from it. */
export const routes: readonly Route[] = [
  ...sessionRoutes,
  ...figureRoutes,
  ...serverRoutes,
  ...toolRoutes,
  ...callRoutes,
  ...agentRoutes,
  ...chatRoutes,
]

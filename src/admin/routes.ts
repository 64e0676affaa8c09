import * as z from 'zod'
import { approvalsRoutes } from './approvals/approvals.ts'
import { auditRoutes } from './audit/audit.ts'
import { callsRoutes } from './calls/calls.ts'
import { chatRoutes, type DashboardChat } from './chat/chat.ts'
import { configRoutes } from './config/config.ts'
import { configEditRoutes } from './config/config-edit.ts'
import { inboxRoutes } from './inbox/inbox-service.ts'
import { keysRoutes } from './keys/keys.ts'
import type { LiveEvents } from './live-events.ts'
import { overviewRoutes } from './overview/overview.ts'
import { pinsRoutes } from './pins/pins.ts'
import { type PlaygroundStreams, playgroundRoutes } from './playground/playground.ts'
import { policyRoutes } from './policy/policy.ts'
import { answered, publicRoute, type Route, userRoute } from './router.ts'
import { serversRoutes } from './servers/servers.ts'
import type { AdminService } from './service.ts'
import { type Credentials, sessionRoutes } from './session/credentials.ts'
import { searchRoutes } from './tools/search.ts'
import { toolsRoutes } from './tools/tools.ts'

export interface RouteParts {
  readonly admin: AdminService
  readonly credentials: Credentials
  readonly chat: DashboardChat
  readonly events: LiveEvents
  readonly streams: PlaygroundStreams
  /** The OpenAPI document. */
  document(): object
}

/** All admin API routes. The router and the OpenAPI document are built from this list. */
export const adminRoutes = ({ admin, ...parts }: RouteParts): readonly Route[] => [
  ...sessionRoutes(parts.credentials),
  userRoute(
    'GET',
    'events',
    'Server-sent events: overview, calls, servers, approvals, reload, inbox; starts with one of each',
    {
      stream: true,
      run({ user, caller, response }, { watch }) {
        parts.events.open(caller, response)
        watch(user, response)
        return answered
      },
    },
  ),
  publicRoute('GET', 'openapi.json', 'This document', {
    answer: z.record(z.string(), z.unknown()),
    run: () => parts.document(),
  }),
  ...overviewRoutes(admin),
  ...inboxRoutes(admin),
  ...searchRoutes(admin),
  ...serversRoutes(admin),
  ...toolsRoutes(admin),
  ...pinsRoutes(admin),
  ...playgroundRoutes(admin, parts.streams),
  ...callsRoutes(admin),
  ...approvalsRoutes(admin),
  ...auditRoutes(admin),
  ...policyRoutes(admin),
  ...keysRoutes(admin),
  ...configRoutes(admin),
  ...configEditRoutes(admin),
  ...chatRoutes(parts.chat),
]

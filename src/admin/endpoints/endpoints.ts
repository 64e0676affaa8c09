import * as z from 'zod'
import type { Caller } from '../../core/call.ts'
import { endpointPath } from '../../core/endpoint-path.ts'
import { tokenAccount } from '../../core/tokens.ts'
import type { AdminContext } from '../context.ts'
import type { EndpointView } from '../contract.ts'
import { type Route, userRoute } from '../router.ts'
import { asAgent, withoutMetaTools } from '../tools/visibility.ts'
import { endpointView } from './schema.ts'

export type EndpointsService = ReturnType<typeof createEndpointsAdmin>

export const createEndpointsAdmin = ({ current, endpoint }: AdminContext) => ({
  /** The endpoints that a user may connect to. */
  endpoints({ agent: own, agents }: Caller): readonly EndpointView[] {
    const { loaded, catalog, policy } = current()
    return Object.entries(loaded.config.endpoints).flatMap(([name, { description = '', agent = null }]) => {
      if (agent !== null && agents !== '*' && !agents.includes(agent)) return []
      const acting = agent ?? own
      const url = new URL(endpoint())
      url.pathname = endpointPath(url.pathname, name)
      const shown = catalog.view({ ...asAgent(acting), endpoint: name })
      return {
        ...{ name, path: url.pathname, url: url.href, description, agent },
        expose: policy.exposureOf(acting, name),
        tools: withoutMetaTools(shown.list('tool')).length,
        tokens: tokenAccount(shown),
      }
    })
  },
})

export const endpointsRoutes = (admin: EndpointsService): readonly Route[] => [
  userRoute('GET', 'endpoints', 'Endpoints for groups of tools', {
    answer: z.array(endpointView),
    run: ({ caller }) => admin.endpoints(caller),
  }),
]

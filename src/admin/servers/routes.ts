import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import type { ServerAction } from '../../runtime/cluster.ts'
import { adminRoute, type Route, userRoute } from '../router.ts'
import * as catalog from '../tools/schema.ts'
import { serverDetail } from '../tools/schema.ts'
import { callbackOf } from './oauth-callback.ts'

const actions: Readonly<Record<ServerAction, string>> = {
  restart: "Restarts a server's process or connection",
  enable: 'Enables a server',
  disable: 'Disables a server: it lists nothing and rejects calls until it is enabled or restarted',
  refresh: "Refreshes a server's tools, resources and prompts",
}

export const serversRoutes: readonly Route[] = [
  userRoute('GET', 'servers', 'All servers and their state', {
    answer: z.array(catalog.serverView),
    run: ({ caller }, { admin }) => admin.servers(caller),
  }),
  userRoute('GET', 'servers/{name}', 'One server: what it offers, its connections, history and output', {
    answer: serverDetail,
    run: ({ caller, target }, { admin }) => admin.server(caller, target),
  }),
  adminRoute('POST', 'refresh', 'Refreshes the tools, resources and prompts of all servers', {
    answer: catalog.refreshedServers,
    run: ({ caller }, { admin }) => admin.refreshServers(caller),
  }),
  ...Object.entries(actions).map(([action, summary]) =>
    adminRoute('POST', `servers/{name}/${action}`, summary, {
      answer: catalog.serverView,
      run: ({ caller, target }, { admin }) => admin.control(caller, target, action as ServerAction),
    }),
  ),
  adminRoute('GET', 'servers/{name}/grants', 'The OAuth grants that are stored for a server, without tokens', {
    answer: z.array(catalog.grantView),
    run: ({ target }, { admin }) => admin.grants(target),
  }),
  adminRoute('POST', 'servers/{name}/sign-out', "Deletes a server's OAuth grants; returns those that are left", {
    body: catalog.signOut,
    answer: z.array(catalog.grantView),
    run: ({ caller, target, body }, { admin }) => admin.signOut(caller, target, body.principal),
  }),
  adminRoute('POST', 'servers/{name}/sign-in', 'Starts an OAuth sign-in to a server; returns the URL to open', {
    answer: catalog.signInView,
    run({ caller, target, request }, { admin }) {
      if (admin.signIn) return admin.signIn(caller, target, callbackOf(request))
      throw new ToolwayError('INVALID_ARGUMENTS', 'This gateway does not support signing in to servers.')
    },
  }),
]

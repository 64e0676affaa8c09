import * as z from 'zod'
import { ToolwayError } from '../../../core/errors.ts'
import type { ServerAction } from '../port.ts'
import { guarded, type Route } from '../route.ts'
import { serverDetail, serverView, signInView } from '../schema/servers.ts'
import { callbackOf } from '../sign-in.ts'

const actions: Readonly<Record<ServerAction, string>> = {
  restart: 'Ends the process or connection of a server and starts it anew',
  enable: 'Turns a server on again',
  disable: 'Turns a server off: it lists nothing and refuses calls until it is enabled or restarted',
  refresh: 'Asks a server again what it offers',
}

export const serverRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'servers',
    summary: 'Every server and how it is',
    access: 'guest',
    answer: z.array(serverView),
    run: ({ caller }, { admin }) => admin.servers(caller),
  }),
  guarded({
    method: 'GET',
    path: 'servers/{name}',
    summary: 'One server, and what it said last',
    access: 'guest',
    answer: serverDetail,
    run: ({ caller, target }, { admin }) => admin.server(caller, target),
  }),
  ...Object.entries(actions).map(([action, summary]) =>
    guarded({
      method: 'POST',
      path: `servers/{name}/${action}`,
      summary,
      access: 'admin',
      answer: serverView,
      run: ({ caller, target }, { admin }) => admin.control(caller, target, action as ServerAction),
    }),
  ),
  guarded({
    method: 'POST',
    path: 'servers/{name}/sign-in',
    summary: 'Begins to sign in to a server that wants OAuth, and tells where to go for that',
    access: 'admin',
    answer: signInView,
    run({ caller, target, request }, { admin }) {
      if (admin.signIn) return admin.signIn(caller, target, callbackOf(request))
      throw new ToolwayError('INVALID_ARGUMENTS', 'Nobody can sign in to servers here.')
    },
  }),
]

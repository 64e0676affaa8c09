import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import type { SessionView } from './contract.ts'
import type { AdminUser } from './credentials.ts'
import { callbackOf } from './oauth-callback.ts'
import { answered, guarded, memberOf, open, type Route } from './router.ts'
import {
  auditListQuery,
  auditPage,
  callDetail,
  callsQuery,
  callView,
  chainView,
  chatView,
  timeRange,
  toolsQuery,
  whyQuery,
} from './schemas/calls.ts'
import {
  agentView,
  matrix,
  serverDetail,
  serverView,
  signInView,
  toolDetail,
  toolPage,
  tryResult,
  whyView,
} from './schemas/catalog.ts'
import { configView, overview, reloadEvent, series, sessionView, stats, statsBy } from './schemas/figures.ts'
import type { ServerAction } from './service.ts'

const toolRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'tools',
    summary: 'The tools, in the order in which they are served',
    access: 'guest',
    query: toolsQuery,
    answer: toolPage,
    run: ({ caller, query }, { admin }) => admin.tools(caller, query),
  }),
  guarded({
    method: 'GET',
    path: 'tools/{name}',
    summary: 'One tool: its definition, and who may use it',
    access: 'guest',
    answer: toolDetail,
    run: ({ caller, target }, { admin }) => admin.tool(caller, target),
  }),
  guarded({
    method: 'POST',
    path: 'tools/{name}/call',
    summary: 'Calls a tool, as one of the agents that the credential may act as: a call like any other',
    access: 'guest',
    body: z.strictObject({
      arguments: z.record(z.string(), z.unknown()).default({}).describe('Its arguments.'),
      agent: z.string().optional().describe('The agent; the one of the credential otherwise.'),
    }),
    answer: tryResult,
    run({ caller, target, body: { agent }, bytes, signal }, { admin }) {
      const given = bytes && (memberOf(bytes, 'arguments') as Json<Record<string, unknown>> | undefined)
      return admin.tryTool(caller, target, { arguments: given ?? Json.of({}), agent }, signal)
    },
  }),
]

const callRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'calls',
    summary: 'The latest calls, newest first',
    access: 'guest',
    query: callsQuery,
    answer: z.array(callView),
    run: ({ caller, query }, { admin }) => admin.calls(caller, query),
  }),
  guarded({
    method: 'GET',
    path: 'calls/{id}',
    summary: 'One call: its timeline and its audit records',
    access: 'guest',
    answer: callDetail,
    async run({ caller, target }, { admin }) {
      const call = await admin.call(caller, target)
      if (call) return call
      const sentence = 'There is no such call, or not any more: only the latest are kept. The audit log has them all.'
      throw new HttpError(404, rpcCodes.request, sentence)
    },
  }),
  guarded({
    method: 'GET',
    path: 'audit',
    summary: 'Operations in the audit log, newest first',
    access: 'admin',
    query: auditListQuery,
    answer: auditPage,
    run: ({ query }, { admin }) => admin.audit(query),
  }),
  guarded({
    method: 'GET',
    path: 'audit/chain',
    summary: 'Whether the audit log is as it was written, as far as it was checked',
    access: 'admin',
    answer: chainView,
    run: (_, { admin }) => admin.chain(),
  }),
  guarded({
    method: 'POST',
    path: 'audit/chain/verify',
    summary: 'Begins to check the whole audit log; GET audit/chain tells how it went',
    access: 'admin',
    answer: chainView,
    run: (_, { admin }) => admin.verifyChain(),
  }),
]

const message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })

const chatRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'chat',
    summary: 'The models that one can talk to',
    access: 'guest',
    answer: chatView,
    run: (_, { chat }) => chat.view(),
  }),
  guarded({
    method: 'POST',
    path: 'chat',
    summary: 'Answers a conversation with the help of the tools, as a stream of events',
    access: 'guest',
    stream: true,
    body: z.strictObject({
      messages: z.array(message).min(1).describe('What was said so far, and what is asked now.'),
      model: z.string().min(1).optional().describe('One of the models; the usual one otherwise.'),
      mode: z.enum(['staged', 'agent']).optional().describe('Instead of chat.mode.'),
      agent: z.string().optional().describe('The agent; the one of the credential otherwise.'),
    }),
    async run({ guest, caller, body, signal, response }, { chat, watch }) {
      watch(guest, response)
      await chat.answer(body, { caller, signal, response })
      return answered
    },
  }),
]

/** Sufficient for the longest credential in JSON encoding. */
const maxBody = 64 * 1024

const sessionRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'session',
    summary: 'Who is asking, and what they may do',
    access: 'guest',
    answer: sessionView,
    run: ({ guest }) => viewOf(guest),
  }),
  open({
    method: 'POST',
    path: 'session',
    summary: 'Takes a credential and sets a cookie that stands for it',
    access: 'anyone',
    body: z.strictObject({ token: z.string().min(1).describe('The token, an API key, or a JSON Web Token.') }),
    maxBody,
    answer: sessionView,
    async run({ request, response, body }, { credentials }) {
      const { guest, cookie } = await credentials.logIn(request, body.token)
      response.setHeader('Set-Cookie', cookie)
      return viewOf(guest)
    },
  }),
  open({
    method: 'DELETE',
    path: 'session',
    summary: 'Ends what the cookie stands for',
    access: 'anyone',
    run({ request, response }, { credentials }) {
      response.setHeader('Set-Cookie', credentials.logOut(request))
    },
  }),
  guarded({
    method: 'GET',
    path: 'events',
    summary: 'Server-sent events: overview, calls, servers, reload; it begins with all of them',
    access: 'guest',
    stream: true,
    run({ guest, caller, response }, { events, watch }) {
      events.open(caller, response)
      watch(guest, response)
      return answered
    },
  }),
  open({
    method: 'GET',
    path: 'openapi.json',
    summary: 'This document',
    access: 'anyone',
    answer: z.record(z.string(), z.unknown()),
    run: (_, { document }) => document(),
  }),
]

const viewOf = ({ caller }: AdminUser): SessionView => {
  const { principal, agent, authenticated, admin, agents } = caller
  return { principal, agent, authenticated, admin, agents }
}

const actions: Readonly<Record<ServerAction, string>> = {
  restart: 'Ends the process or connection of a server and starts it anew',
  enable: 'Turns a server on again',
  disable: 'Turns a server off: it lists nothing and refuses calls until it is enabled or restarted',
  refresh: 'Asks a server again what it offers',
}

const serverRoutes: readonly Route[] = [
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
      throw new ToolwayError('INVALID_ARGUMENTS', 'This gateway does not support signing in to servers.')
    },
  }),
]

const figureRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'overview',
    summary: 'The gateway as a whole',
    access: 'guest',
    answer: overview,
    run: ({ caller }, { admin }) => admin.overview(caller),
  }),
  guarded({
    method: 'GET',
    path: 'series',
    summary: 'Figures over time',
    access: 'guest',
    query: timeRange,
    answer: series,
    run: ({ caller, query }, { admin }) => admin.series(caller, query),
  }),
  guarded({
    method: 'GET',
    path: 'stats',
    summary: 'Figures by agent, server, operation or tool',
    access: 'guest',
    query: z.strictObject({ by: statsBy.describe('What to count by.') }),
    answer: stats,
    run: ({ caller, query }, { admin }) => admin.stats(caller, query.by),
  }),
]

const agentRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'agents',
    summary: 'The agents',
    access: 'admin',
    answer: z.array(agentView),
    run: (_, { admin }) => admin.agents(),
  }),
  guarded({
    method: 'GET',
    path: 'agents/matrix',
    summary: 'May each agent use each tool',
    access: 'admin',
    query: toolsQuery,
    answer: matrix,
    run: ({ query }, { admin }) => admin.matrix(query),
  }),
  guarded({
    method: 'GET',
    path: 'why',
    summary: 'Whether an agent may use a tool, and by which rule',
    access: 'guest',
    query: whyQuery,
    answer: whyView,
    run: ({ caller, query }, { admin }) => admin.why(caller, query),
  }),
  guarded({
    method: 'GET',
    path: 'config',
    summary: 'The configuration in force, secrets replaced, and the history of reloads',
    access: 'admin',
    answer: configView,
    run: (_, { admin }) => admin.config(),
  }),
  guarded({
    method: 'POST',
    path: 'config/reload',
    summary: 'Reads the configuration again and puts it into force, whole or not at all',
    access: 'admin',
    answer: reloadEvent,
    run: ({ caller }, { admin }) => admin.reload(caller),
  }),
]

/** The whole admin API. The router and the OpenAPI document are built from it. */
export const routes: readonly Route[] = [
  ...sessionRoutes,
  ...figureRoutes,
  ...serverRoutes,
  ...toolRoutes,
  ...callRoutes,
  ...agentRoutes,
  ...chatRoutes,
]

import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import type { SessionView } from './contract.ts'
import type { AdminUser } from './credentials.ts'
import { callbackOf } from './oauth-callback.ts'
import { adminRoute, answered, memberOf, publicRoute, type Route, userRoute } from './router.ts'
import * as calls from './schemas/calls.ts'
import * as catalog from './schemas/catalog.ts'
import * as figures from './schemas/figures.ts'
import type { ServerAction } from './service.ts'

const actions: Readonly<Record<ServerAction, string>> = {
  restart: "Restarts a server's process or connection",
  enable: 'Enables a server',
  disable: 'Disables a server: it lists nothing and rejects calls until it is enabled or restarted',
  refresh: "Refreshes a server's tools, resources and prompts",
}

const message = z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })

/** Maximum size of a login request; large enough for the longest credential, encoded as JSON. */
const maxBody = 64 * 1024

/** All admin API routes. The router and the OpenAPI document are built from this list. */
export const routes: readonly Route[] = [
  userRoute('GET', 'session', 'The current user and their rights', {
    answer: figures.sessionView,
    run: ({ user }) => viewOf(user),
  }),
  publicRoute('POST', 'session', 'Logs in with a credential and sets a cookie', {
    body: z.strictObject({ token: z.string().min(1).describe('The token, an API key, or a JSON Web Token.') }),
    maxBody,
    answer: figures.sessionView,
    async run({ request, response, body }, { credentials }) {
      const { user, cookie } = await credentials.logIn(request, body.token)
      response.setHeader('Set-Cookie', cookie)
      return viewOf(user)
    },
  }),
  publicRoute('DELETE', 'session', 'Logs out and deletes the cookie', {
    run({ request, response }, { credentials }) {
      response.setHeader('Set-Cookie', credentials.logOut(request))
    },
  }),
  userRoute('GET', 'events', 'Server-sent events: overview, calls, servers, reload; starts with one of each', {
    stream: true,
    run({ user, caller, response }, { events, watch }) {
      events.open(caller, response)
      watch(user, response)
      return answered
    },
  }),
  publicRoute('GET', 'openapi.json', 'This document', {
    answer: z.record(z.string(), z.unknown()),
    run: (_, { document }) => document(),
  }),
  userRoute('GET', 'overview', 'Summary of the gateway', {
    answer: figures.overview,
    run: ({ caller }, { admin }) => admin.overview(caller),
  }),
  userRoute('GET', 'series', 'Statistics over time', {
    query: calls.timeRange,
    answer: figures.series,
    run: ({ caller, query }, { admin }) => admin.series(caller, query),
  }),
  userRoute('GET', 'stats', 'Statistics by agent, server, operation or tool', {
    query: z.strictObject({ by: figures.statsBy.describe('What to group by.') }),
    answer: figures.stats,
    run: ({ caller, query }, { admin }) => admin.stats(caller, query.by),
  }),
  userRoute('GET', 'servers', 'All servers and their state', {
    answer: z.array(catalog.serverView),
    run: ({ caller }, { admin }) => admin.servers(caller),
  }),
  userRoute('GET', 'servers/{name}', 'One server, with its latest stderr output', {
    answer: catalog.serverDetail,
    run: ({ caller, target }, { admin }) => admin.server(caller, target),
  }),
  ...Object.entries(actions).map(([action, summary]) =>
    adminRoute('POST', `servers/{name}/${action}`, summary, {
      answer: catalog.serverView,
      run: ({ caller, target }, { admin }) => admin.control(caller, target, action as ServerAction),
    }),
  ),
  adminRoute('POST', 'servers/{name}/sign-in', 'Starts an OAuth sign-in to a server; returns the URL to open', {
    answer: catalog.signInView,
    run({ caller, target, request }, { admin }) {
      if (admin.signIn) return admin.signIn(caller, target, callbackOf(request))
      throw new ToolwayError('INVALID_ARGUMENTS', 'This gateway does not support signing in to servers.')
    },
  }),
  userRoute('GET', 'tools', 'The tools, in the order in which they are served', {
    query: calls.toolsQuery,
    answer: catalog.toolPage,
    run: ({ caller, query }, { admin }) => admin.tools(caller, query),
  }),
  userRoute('GET', 'tools/{name}', 'One tool, its definition and who may use it', {
    answer: catalog.toolDetail,
    run: ({ caller, target }, { admin }) => admin.tool(caller, target),
  }),
  userRoute('POST', 'tools/{name}/call', 'Calls a tool as one of the agents that the credential may act as', {
    body: z.strictObject({
      arguments: z.record(z.string(), z.unknown()).default({}).describe('Its arguments.'),
      agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
    }),
    answer: catalog.tryResult,
    run({ caller, target, body: { agent }, bytes, signal }, { admin }) {
      const given = bytes && (memberOf(bytes, 'arguments') as Json<Record<string, unknown>> | undefined)
      return admin.tryTool(caller, target, { arguments: given ?? Json.of({}), agent }, signal)
    },
  }),
  userRoute('GET', 'calls', 'The latest calls, newest first', {
    query: calls.callsQuery,
    answer: z.array(calls.callView),
    run: ({ caller, query }, { admin }) => admin.calls(caller, query),
  }),
  userRoute('GET', 'calls/{id}', 'One call: its timeline and its audit records', {
    answer: calls.callDetail,
    async run({ caller, target }, { admin }) {
      const call = await admin.call(caller, target)
      if (call) return call
      const sentence = 'Call not found: only the latest calls are kept. The audit log has all of them.'
      throw new HttpError(404, rpcCodes.request, sentence)
    },
  }),
  adminRoute('GET', 'audit', 'Operations in the audit log, newest first', {
    query: calls.auditListQuery,
    answer: calls.auditPage,
    run: ({ query }, { admin }) => admin.audit(query),
  }),
  adminRoute('GET', 'audit/chain', 'Whether the audit log is unchanged, as of the last check', {
    answer: calls.chainView,
    run: (_, { admin }) => admin.chain(),
  }),
  adminRoute(
    'POST',
    'audit/chain/verify',
    'Starts a check of the whole audit log; GET audit/chain returns the outcome',
    {
      answer: calls.chainView,
      run: (_, { admin }) => admin.verifyChain(),
    },
  ),
  adminRoute('GET', 'agents', 'The agents', {
    answer: z.array(catalog.agentView),
    run: (_, { admin }) => admin.agents(),
  }),
  adminRoute('GET', 'agents/matrix', 'Which agent may use which tool', {
    query: calls.toolsQuery,
    answer: catalog.matrix,
    run: ({ query }, { admin }) => admin.matrix(query),
  }),
  userRoute('GET', 'why', 'Whether an agent may use a tool, and by which rule', {
    query: calls.whyQuery,
    answer: catalog.whyView,
    run: ({ caller, query }, { admin }) => admin.why(caller, query),
  }),
  adminRoute('GET', 'config', 'The effective configuration without secrets, and the reload history', {
    answer: figures.configView,
    run: (_, { admin }) => admin.config(),
  }),
  adminRoute('POST', 'config/reload', 'Reloads the configuration; an invalid one is not applied', {
    answer: figures.reloadEvent,
    run: ({ caller }, { admin }) => admin.reload(caller),
  }),
  userRoute('GET', 'chat', 'The chat models', {
    answer: calls.chatView,
    run: (_, { chat }) => chat.view(),
  }),
  userRoute('POST', 'chat', 'Answers a conversation with the help of tools; streams events', {
    stream: true,
    body: z.strictObject({
      messages: z.array(message).min(1).describe('The conversation, ending with the new message.'),
      model: z.string().min(1).optional().describe('The model. Default: the first one that GET chat returns.'),
      mode: z.enum(['staged', 'agent']).optional().describe('Overrides chat.mode.'),
      agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
    }),
    async run({ user, caller, body, signal, response }, { chat, watch }) {
      watch(user, response)
      await chat.answer(body, { caller, signal, response })
      return answered
    },
  }),
]

const viewOf = ({ caller }: AdminUser): SessionView => {
  const { principal, agent, authenticated, admin, agents } = caller
  return { principal, agent, authenticated, admin, agents }
}

import * as z from 'zod'
import * as calls from '../calls/schema.ts'
import { configEdit } from '../config/schema.ts'
import * as keys from '../keys/schema.ts'
import { adminRoute, answered, type Route, userRoute } from '../router.ts'
import * as catalog from '../tools/schema.ts'
import * as policy from './schema.ts'

export const policyRoutes: readonly Route[] = [
  adminRoute('GET', 'agents', 'The agents', {
    answer: z.array(catalog.agentView),
    run: (_, { admin }) => admin.agents(),
  }),
  adminRoute('GET', 'agents/matrix', 'Which agent may use which tool', {
    query: calls.toolsQuery.omit({ sort: true }),
    answer: catalog.matrix,
    run: ({ query }, { admin }) => admin.matrix(query),
  }),
  adminRoute('GET', 'agents/tools', "The tools of the request's agent, with their definitions", {
    query: z.strictObject({ server: z.string().optional(), timeoutMs: z.coerce.number().int().min(0).optional() }),
    answer: catalog.agentTools,
    run: ({ caller, query }, { admin }) => admin.agentTools(caller, query.server, query.timeoutMs),
  }),
  adminRoute('GET', 'policy', 'Agents, rules, limits and guards as the configuration file defines them', {
    answer: policy.policySettings,
    run: (_, { admin }) => admin.policySettings(),
  }),
  adminRoute('POST', 'policy/preview', 'Which permissions an edit of the configuration would change', {
    body: configEdit,
    answer: policy.policyPreview,
    run: ({ body }, { admin }) => admin.previewPolicy(body),
  }),
  adminRoute(
    'POST',
    'policy/replay',
    'Which recorded calls an edit would decide differently; streams progress, then the result (PolicyReplay)',
    {
      stream: true,
      body: policy.replayRequest,
      async run({ user, body: { edit, days }, signal, response }, { admin, watch, stream }) {
        watch(user, response)
        await stream(response, admin.replayPolicy(edit, days, signal))
        return answered
      },
    },
  ),
  userRoute('GET', 'why', 'Whether an agent may use a tool, and by which rule', {
    query: calls.whyQuery,
    answer: catalog.whyView,
    run: ({ caller, query }, { admin }) => admin.why(caller, query),
  }),
]

/** API keys. Only admins may create them, so only admins can create keys with admin rights. */
export const keysRoutes: readonly Route[] = [
  adminRoute('GET', 'keys', 'All API keys, without their secrets', {
    answer: keys.keysView,
    run: (_, { admin }) => admin.keys(),
  }),
  adminRoute('POST', 'keys', 'Creates an API key and returns it once', {
    body: keys.createKey,
    answer: keys.issuedKeyView,
    run: ({ caller, body }, { admin }) => admin.createKey(caller, body),
  }),
  adminRoute('POST', 'keys/{id}/rotate', 'Gives a key a new secret and returns it once; the old one ends later', {
    body: keys.rotateKey,
    answer: keys.issuedKeyView,
    run: ({ caller, target, body }, { admin }) => admin.rotateKey(caller, target, body),
  }),
  adminRoute('POST', 'keys/{id}/revoke', 'Revokes a key with all its secrets', {
    answer: keys.keysView,
    run: ({ caller, target }, { admin }) => admin.revokeKey(caller, target),
  }),
]

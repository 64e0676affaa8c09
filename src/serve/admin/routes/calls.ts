import * as z from 'zod'
import { Refusal, rpc } from '../../refusal.ts'
import { cursor, limit, moment, text } from '../query.ts'
import { guarded, type Route } from '../route.ts'
import { auditPage, callDetail, callView, chainView, outcome } from '../schema/calls.ts'

export const callRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'calls',
    summary: 'The latest calls, newest first',
    access: 'guest',
    query: z.strictObject({
      agent: text('Those of this agent.'),
      server: text('Those to this server.'),
      name: text('Those of this tool, resource or prompt.'),
      operation: text('Those of this operation, such as call_tool.'),
      outcome: outcome.optional().describe('Those that ended so.'),
      text: text('Anywhere in the id, the names, the principal or the code.'),
      limit: limit(100, 1_000),
    }),
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
      throw new Refusal(404, rpc.request, sentence)
    },
  }),
  guarded({
    method: 'GET',
    path: 'audit',
    summary: 'Operations in the audit log, newest first',
    access: 'admin',
    query: z.strictObject({
      agent: text('By this agent; names may have * in them.'),
      principal: text('By this principal.'),
      server: text('At this server.'),
      tool: text('On this tool: its own name, or server.tool.'),
      operation: text('Such as call_tool, list, authenticate.'),
      decision: text('ALLOW, DENY, ERROR or TIMEOUT.'),
      reason: text('Such as rate_limited.'),
      code: text('Such as TOOL_BLOCKED.'),
      call: text('Of the call with this id.'),
      parent: text('Caused by the chat, or by the call, with this id.'),
      text: text('Anywhere in the arguments, or as name=value.'),
      from: moment('From then on.'),
      to: moment('Before then.'),
      cursor,
      limit: limit(50, 500),
    }),
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

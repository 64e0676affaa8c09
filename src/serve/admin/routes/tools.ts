import * as z from 'zod'
import { Json } from '../../../core/json.ts'
import { memberOf } from '../inputs.ts'
import { cursor, limit, text } from '../query.ts'
import { guarded, type Route } from '../route.ts'
import { toolDetail, toolPage, tryResult } from '../schema/tools.ts'

/** Which tools are asked for, in lists and in the matrix. */
export const toolsQuery = z.strictObject({
  query: text('Words that must all stand in the name, title, description or server.'),
  server: text('The tools of this server alone.'),
  cursor,
  limit: limit(100, 500),
})

export const toolRoutes: readonly Route[] = [
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

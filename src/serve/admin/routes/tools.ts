import * as z from 'zod'
import { Json } from '../../../core/json.ts'
import { memberOf, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import * as catalog from '../schemas/catalog.ts'

/** Tools: their definitions, and calling one. */
export const toolsRoutes: readonly Route[] = [
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
]

import * as z from 'zod'
import { adminRoute, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import * as catalog from '../schemas/catalog.ts'

/** Agents and what they may use. */
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
  userRoute('GET', 'why', 'Whether an agent may use a tool, and by which rule', {
    query: calls.whyQuery,
    answer: catalog.whyView,
    run: ({ caller, query }, { admin }) => admin.why(caller, query),
  }),
]

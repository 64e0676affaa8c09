import * as z from 'zod'
import { text } from '../query.ts'
import { guarded, type Route } from '../route.ts'
import { agentView, matrix, whyView } from '../schema/agents.ts'
import { configView, reloadEvent } from '../schema/config.ts'
import { toolsQuery } from './tools.ts'

export const agentRoutes: readonly Route[] = [
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
    query: z.strictObject({
      agent: text('The agent; the one of the credential otherwise.'),
      tool: z.string().min(1).max(500).describe('The tool, in any of its spellings.'),
    }),
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

import * as z from 'zod'
import type { AgentView, Matrix, SessionView, WhyView } from '../contract.ts'
import { figures, tokenAccount } from './figures.ts'
import { fits } from './fits.ts'

export const sessionView = fits<SessionView>(
  'SessionView',
  'Who is asking, and what they may do.',
)(
  z.strictObject({
    principal: z.string(),
    agent: z.string(),
    authenticated: z.boolean(),
    admin: z.boolean(),
    agents: z.union([z.array(z.string()), z.literal('*')]).describe('The agents that it may act as.'),
  }),
)

export const agentView = fits<AgentView>(
  'AgentView',
  'An agent.',
)(
  z.strictObject({
    name: z.string(),
    inherits: z.string().nullable(),
    expose: z.string(),
    isDefault: z.boolean(),
    tools: z.int().min(0).describe('How many tools it may use.'),
    tokens: tokenAccount,
    perMinute: z.number().nullable(),
    concurrency: z.number().nullable(),
    calls: figures,
  }),
)

export const matrix = fits<Matrix>(
  'Matrix',
  'May each agent use each tool; the columns are the agents.',
)(
  z.strictObject({
    agents: z.array(z.string()),
    rows: z.array(z.strictObject({ server: z.string(), tool: z.string(), allowed: z.array(z.boolean()) })),
    total: z.int().min(0),
    nextCursor: z.string().nullable(),
  }),
)

export const whyView = fits<WhyView>(
  'WhyView',
  'Whether an agent may use a tool, and all that led to it.',
)(
  z.strictObject({
    agent: z.string(),
    server: z.string(),
    tool: z.string(),
    allowed: z.boolean(),
    rule: z.string(),
    sentence: z.string(),
    considered: z.array(z.strictObject({ rule: z.string(), text: z.string() })),
  }),
)

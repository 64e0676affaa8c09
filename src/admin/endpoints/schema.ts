import * as z from 'zod'
import { tokenAccountSchema, type ViewOf, view } from '../overview/schema.ts'

export const endpointView = view('EndpointView', 'An endpoint for a group of tools.', {
  name: z.string(),
  path: z.string(),
  url: z.string(),
  description: z.string(),
  agent: z.string().nullable().describe('The agent that all its callers act as.'),
  expose: z.string().describe('How clients see its tools.'),
  tools: z.int().min(0).describe('How many tools it serves to its agent; if it has none, to the agent of the user.'),
  tokens: tokenAccountSchema,
})
export type EndpointView = ViewOf<typeof endpointView>

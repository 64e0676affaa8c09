import * as z from 'zod'
import { type ViewOf, view } from '../overview/schema.ts'

const maxPlaygroundText = 2_000
const promptOrUri = z.string().min(1).max(maxPlaygroundText)
const anyObject = z.record(z.string(), z.unknown())

export const playgroundInput = z.strictObject({
  operation: z.enum(['call_tool', 'read_resource', 'get_prompt']).default('call_tool'),
  name: promptOrUri.describe('The tool or prompt, or the URI of the resource.'),
  arguments: anyObject.default({}).describe('The arguments of the tool or prompt.'),
  agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
})
export type PlaygroundBody = ViewOf<typeof playgroundInput>

export const playgroundAnswer = z.strictObject({
  result: anyObject.optional().describe('The result of the request, as MCP defines it.'),
  error: z.string().max(maxPlaygroundText).optional().describe('Why the request is refused, instead of a result.'),
})
export type PlaygroundAnswer = ViewOf<typeof playgroundAnswer>

export const completionInput = z.strictObject({
  kind: z.enum(['prompt', 'resource']).describe('What to complete an argument of; resource: a URI template.'),
  name: promptOrUri.describe('The prompt, or the URI template.'),
  argument: z.strictObject({ name: promptOrUri, value: z.string().max(maxPlaygroundText) }),
  context: z.record(z.string(), z.string()).optional().describe('The arguments that are already filled in.'),
  agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
})
export type CompletionInput = ViewOf<typeof completionInput>

export const completionView = view('CompletionView', 'Suggested values for an argument.', {
  values: z.array(z.string()),
  hasMore: z.boolean(),
})
export type CompletionView = ViewOf<typeof completionView>

const resourceView = view('ResourceView', 'A resource, or a template for resources.', {
  uri: z.string().describe('The served URI, or URI template.'),
  template: z.boolean(),
  server: z.string(),
  name: z.string(),
  description: z.string(),
  mimeType: z.string().nullable(),
})
export type ResourceView = ViewOf<typeof resourceView>

export const resourcePage = view('ResourcePage', 'A page of resources and resource templates.', {
  resources: z.array(resourceView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  nextCursor: z.string().nullable(),
})
export type ResourcePage = ViewOf<typeof resourcePage>

const promptView = view('PromptView', 'A prompt.', {
  name: z.string().describe('The served name.'),
  server: z.string(),
  title: z.string().nullable(),
  description: z.string(),
  arguments: z.array(z.strictObject({ name: z.string(), description: z.string(), required: z.boolean() })),
})
export type PromptView = ViewOf<typeof promptView>

export const promptPage = view('PromptPage', 'A page of prompts.', {
  prompts: z.array(promptView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  nextCursor: z.string().nullable(),
})
export type PromptPage = ViewOf<typeof promptPage>

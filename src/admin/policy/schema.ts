import * as z from 'zod'
import { configEdit, editable } from '../config/schema.ts'
import { type ViewOf, view } from '../overview/schema.ts'

const policyCount = z.int().min(0)

const policyPart = view('PolicyPart', 'A part of the policy in the configuration file.', {
  path: z.array(z.string()).describe('Where it is, such as ["agents", "coder"].'),
  kind: z.enum(['agent', 'rules', 'limits', 'defaults', 'guards']),
  title: z.string(),
  value: z.unknown().describe('What the file contains there; null if nothing.'),
  yaml: z.string().describe('The same as YAML.'),
  hash: z.string().describe('Identifies what the file contains there.'),
})
export type PolicyPart = ViewOf<typeof policyPart>

export const policySettings = view('PolicySettings', 'The policy as the configuration file defines it.', {
  file: z.string(),
  editable,
  parts: z.array(policyPart),
  schemas: z
    .record(z.string(), z.record(z.string(), z.unknown()))
    .describe('The JSON schema of each kind of part, for forms.'),
})
export type PolicySettings = ViewOf<typeof policySettings>

const permissionsByAgent = z
  .array(z.boolean().nullable())
  .describe('For each agent in `agents`; null if the agent does not exist.')

export const policyPreview = view('PolicyPreview', 'The permissions that an edit would change.', {
  agents: z.array(z.string()).describe('The agents for which something changes.'),
  rows: z.array(
    z.strictObject({ server: z.string(), tool: z.string(), before: permissionsByAgent, after: permissionsByAgent }),
  ),
  changed: policyCount.describe('How many permissions change.'),
  total: policyCount.describe('How many permissions there are: agents times tools.'),
  omitted: policyCount.describe('How many changed tools are not listed.'),
})
export type PolicyPreview = ViewOf<typeof policyPreview>

export const replayRequest = z.strictObject({
  edit: configEdit,
  days: z.number().positive().max(366).default(7).describe('How many days to look back.'),
})

const replayChange = view('ReplayChange', 'Recorded calls that would now be decided differently.', {
  agent: z.string(),
  server: z.string(),
  tool: z.string(),
  calls: policyCount,
  last: z.number().describe('When the last of them was made.'),
  before: z.string().nullable().describe('The rule that decided; null if it was not recorded.'),
  after: z.string().describe('The rule that would decide.'),
  examples: z.array(z.string()).describe('The ids of the latest of these calls.'),
})
export type ReplayChange = ViewOf<typeof replayChange>

const replayGroup = z.strictObject({
  calls: policyCount,
  changes: z.array(replayChange).describe('Most calls first.'),
  omitted: policyCount.describe('How many groups are not listed.'),
})

/** Registered by name, so that the OpenAPI document describes the last event of the stream. */
export const policyReplay = view('PolicyReplay', 'The effect of a proposed policy on recorded calls.', {
  since: z.number(),
  calls: policyCount,
  complete: z.boolean().describe('False if there were more records than can be replayed.'),
  denied: replayGroup,
  allowed: replayGroup,
  gone: replayGroup.describe('Calls that would fail because the tool would no longer exist.'),
})
export type PolicyReplay = ViewOf<typeof policyReplay>

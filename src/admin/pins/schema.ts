import * as z from 'zod'
import { type ViewOf, view } from '../overview/schema.ts'

const definitionHash = z.string().regex(/^[0-9a-f]{64}$/)

export const pinWord = z.enum(['approved', 'new', 'changed', 'flagged', 'blocked'])
const state = pinWord.describe('What is known of the definition, and whether an operator decided about it.')

const pinFields = {
  label: z
    .string()
    .describe('server.tool, prompt:server.name, skill:server.uri or instructions:server, as the server spells it.'),
  server: z.string(),
  kind: z.enum(['tool', 'prompt', 'skill', 'instructions']),
  name: z.string().describe('The name, with invisible characters spelt out.'),
  state,
  quarantined: z.boolean().describe('Whether quarantine or an operator blocks the definition.'),
  open: z.boolean().describe('Whether the definition waits for a decision.'),
  hash: definitionHash,
  seenAt: z.number(),
  approvedAt: z.number().nullable(),
  approvedBy: z.enum(['first sight', 'operator']).nullable(),
  changed: z.array(z.string()).describe('The fields that differ from the definition approved last.'),
  flags: z.array(z.string()).describe('Kinds of suspicious content in the definition.'),
}

const pinView = view('PinView', 'The pin of a tool, a prompt or the instructions of a server.', pinFields)
export type PinView = ViewOf<typeof pinView>

export const pinPage = view('PinPage', 'Pinned definitions, those that wait for a decision first.', {
  mode: z.enum(['off', 'warn', 'quarantine']).describe('The setting policy.pins.'),
  pins: z.array(pinView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  open: z.int().min(0).describe('How many definitions wait for a decision.'),
  nextCursor: z.string().nullable(),
})
export type PinPage = ViewOf<typeof pinPage>

export const pinsQuery = z.strictObject({
  query: z.string().max(200).optional().describe('Words that the label must contain.'),
  server: z.string().max(200).optional().describe('Definitions of this server.'),
  show: z.enum(['open', 'all']).default('all').describe('open: only definitions that wait for a decision.'),
  cursor: z.string().max(2_000).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
})
export type PinsQuery = ViewOf<typeof pinsQuery>

export const scanFinding = view('ScanFinding', 'Something in a definition that a person should check.', {
  kind: z.string(),
  severity: z.enum(['high', 'warn', 'info']),
  where: z.string().describe('The path within the definition; empty if it is not known.'),
  excerpt: z.string().describe('The text, with invisible characters spelt out.'),
})

const reviewedDefinition = view('ReviewedDefinition', 'One definition kept for a pin.', {
  hash: definitionHash,
  at: z.number().describe('When it was approved or first seen.'),
  state,
  approvedBy: z.enum(['first sight', 'operator']).nullable(),
  current: z.boolean().describe('Whether the server offers this definition now.'),
  findings: z.array(scanFinding),
  lines: z
    .array(
      z.strictObject({
        mark: z.enum([' ', '-', '+']),
        text: z.string(),
        findings: z.array(z.int().min(0)).describe('Indices of the findings in this line.'),
      }),
    )
    .describe('The difference from the definition approved last, with invisible characters spelt out.'),
})
export type ReviewedDefinitionView = ViewOf<typeof reviewedDefinition>

export const pinDetail = view('PinDetail', 'A pin and the definitions kept for it.', {
  ...pinFields,
  mode: z.enum(['off', 'warn', 'quarantine']).describe('The setting policy.pins.'),
  definitions: z.array(reviewedDefinition).describe('The current one first, then the newest.'),
})
export type PinDetail = ViewOf<typeof pinDetail>

export const pinDecision = z.strictObject({
  hash: definitionHash.describe('The definition that the decision is about, as shown by GET pins/LABEL.'),
})

export const pinDecisions = z.strictObject({
  definitions: z
    .array(z.strictObject({ label: z.string().min(1).max(2_000), hash: definitionHash }))
    .min(1)
    .max(500)
    .describe('The definitions to approve, with `label` and `hash` as shown by GET pins.'),
})
export type PinDecisions = ViewOf<typeof pinDecisions>

export const approvedPins = view('ApprovedPins', 'The result of approving several definitions.', {
  approved: z.int().min(0).describe('How many definitions were approved.'),
})
export type ApprovedPins = ViewOf<typeof approvedPins>

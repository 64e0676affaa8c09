import * as z from 'zod'
import { type ViewOf, view } from '../overview/schema.ts'

const inboxKinds = [
  'approval',
  'definition',
  'server',
  'sign-in',
  'audit',
  'rejected',
  'reload',
  'key',
  'store',
] as const

const inboxAction = view('InboxAction', 'A POST request of this API that deals with an item.', {
  name: z.string().describe('What a button for it says.'),
  path: z.string().describe('The path below /admin/api/.'),
  body: z.record(z.string(), z.unknown()).optional(),
  confirm: z.string().optional().describe('What to tell the operator before the request is made.'),
  danger: z.boolean().optional().describe('Whether the action is destructive.'),
})
export type InboxAction = ViewOf<typeof inboxAction>

const inboxItem = view('InboxItem', 'Something that needs a person.', {
  id: z.string().describe('Stable for the same subject.'),
  kind: z.enum(inboxKinds),
  severity: z.enum(['critical', 'warning', 'info']),
  title: z.string(),
  detail: z.string(),
  since: z.number(),
  until: z.number().optional().describe('When it ends without an answer. Such items cannot be dismissed.'),
  link: z.string().nullable().describe('The path of the page in the dashboard that shows more.'),
  actions: z.array(inboxAction),
})
export type InboxItem = ViewOf<typeof inboxItem>

export const inboxView = view('InboxView', 'Everything that needs a person, the most urgent first.', {
  items: z.array(inboxItem),
  dismissed: z.int().min(0).describe('How many items are hidden until they change.'),
  left: z.int().min(0).describe('How many items are left out because there are too many.'),
})
export type InboxView = ViewOf<typeof inboxView>

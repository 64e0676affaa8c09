import type { Kind } from '../core/entry.ts'
import { notificationBytes } from '../wire/message.ts'

const tools = notificationBytes('notifications/tools/list_changed')
const resources = notificationBytes('notifications/resources/list_changed')
const prompts = notificationBytes('notifications/prompts/list_changed')

/** To a client, templates are part of the resources. */
const told: Readonly<Record<Kind, Buffer>> = { tool: tools, resource: resources, template: resources, prompt: prompts }

/** What clients are told when lists have changed: the same few buffers each time, so that they can be kept in a set. */
export const listChanged = (kinds: ReadonlySet<Kind>): ReadonlySet<Buffer> =>
  new Set([...kinds].map((kind) => told[kind]))

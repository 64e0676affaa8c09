import { randomUUID } from 'node:crypto'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { ProcessState } from '../../runtime/process-state.ts'
import { chatText, postWithRetries } from '../../tools/sinks/webhook.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { InboxItem, InboxView } from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import { Dismissals, Inbox } from './inbox.ts'
import { approvalItemId, type InboxContext, inboxSources } from './inbox-sources.ts'
import { inboxView } from './schema.ts'

type OpenInboxOptions = InboxContext &
  Pick<InboxWebhookOptions, 'version' | 'clock' | 'log'> &
  Pick<ProcessState, 'approvals'>

/** Opens the inbox of this process, with its webhook. The items are only computed while somebody is interested. */
export function openInbox(options: OpenInboxOptions): Inbox {
  const { current, clock, log, version } = options
  // The dismissals stay in the folder in which they were opened, even if a reload changes the setting.
  const dismissals = new Dismissals(current().loaded.config.stores.path, log)
  const inbox = new Inbox(dismissals, (text) => current().redactor.text(text), clock, log)
  for (const source of inboxSources(options)) inbox.add(source)
  const url = () => current().loaded.config.inbox.webhook
  // Every process lists the approvals of all processes; only the one in which the call waits posts it.
  const isOwn = ({ id, kind }: InboxItem) =>
    kind !== 'approval' || options.approvals.list().some((approval) => approvalItemId(approval.id) === id)
  let webhook: Disposable | undefined
  /** Follows the setting, so that nothing is polled for a webhook that is not configured. */
  const follow = () => {
    if (url() === undefined) {
      webhook?.[Symbol.dispose]()
      webhook = undefined
    } else webhook ??= createInboxWebhook({ inbox, isOwn, url, version, clock, log })
  }
  inbox.resources.use(options.history.onAttempt(follow))
  inbox.resources.defer(() => webhook?.[Symbol.dispose]())
  follow()
  return inbox
}

export type InboxService = ReturnType<typeof createInboxAdmin>

export const createInboxAdmin = ({ inbox, audit }: Pick<AdminContext, 'inbox' | 'audit'>) => ({
  inbox: () => inbox.view(),
  async dismissItem(caller: Caller, id: string): Promise<InboxView> {
    const action = { operation: 'dismiss_inbox_item', arguments: { id } }
    await auditOperation(audit, caller, action, () => inbox.dismiss(id, caller.principal))
    return inbox.view()
  },
  onInbox: (listener: (view: InboxView) => void): Disposable => inbox.onChange(listener),
})

interface InboxWebhookOptions {
  readonly inbox: Pick<Inbox, 'onChange' | 'view'>
  /** Whether this process posts an item. Others post theirs. */
  isOwn(item: InboxItem): boolean
  /** The setting `inbox.webhook`, which a reload may change. */
  url(): string | undefined
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

const maxWaitingItems = 200
const settings = { headers: {}, attempts: 4, timeout: 10_000 }

/**
 * Posts new inbox items, and those that are open at the start. Items that wait are bounded; the oldest are dropped. Each
 * delivery has an idempotency key, so that the receiver can detect a repeated one. Redirects are not followed.
 */
export function createInboxWebhook(options: InboxWebhookOptions): Disposable {
  const { inbox, isOwn, url, version, clock, log, random } = options
  const stop = new AbortController()
  let waiting = new Map<string, InboxItem>()
  let sending = false

  const deliver = async (address: string, items: readonly InboxItem[]): Promise<void> => {
    const text = chatText(items.map(({ title }) => title).join('\n'))
    const body = { id: randomUUID(), source: 'toolway', version, text, items }
    const config = { ...settings, url: address }
    const posting = { config, timeoutKey: 'a fixed limit', facts: { webhook: 'inbox' }, clock, log, random }
    const { attempt } = await postWithRetries(body, posting, stop.signal)
    if (attempt.kind === 'acknowledged') return
    log.warn({ reason: attempt.reason, items: items.length }, 'could not deliver inbox items (inbox.webhook)')
  }

  const send = async () => {
    sending = true
    try {
      while (waiting.size > 0) {
        const items = [...waiting.values()]
        waiting = new Map()
        const address = url()
        if (address !== undefined) await deliver(address, items)
      }
    } catch (thrown) {
      if (!stop.signal.aborted) log.warn({ err: thrown }, 'could not deliver inbox items (inbox.webhook)')
    } finally {
      sending = false
    }
  }

  const add = (items: readonly InboxItem[]) => {
    if (url() === undefined) return
    for (const item of items.filter(isOwn)) waiting.set(item.id, item)
    for (const id of [...waiting.keys()].slice(0, Math.max(0, waiting.size - maxWaitingItems))) waiting.delete(id)
    if (!sending && waiting.size > 0) void send()
  }

  const subscription = inbox.onChange((_, added) => add(added))
  add(inbox.view().items)
  return {
    [Symbol.dispose]() {
      subscription[Symbol.dispose]()
      stop.abort()
    },
  }
}

export const inboxRoutes = (admin: InboxService): readonly Route[] => [
  adminRoute('GET', 'inbox', 'Everything that needs a person, each item with its actions', {
    answer: inboxView,
    run: () => admin.inbox(),
  }),
  adminRoute('POST', 'inbox/{id}/dismiss', 'Hides an item until it changes', {
    answer: inboxView,
    run: ({ caller, target }) => admin.dismissItem(caller, target),
  }),
]

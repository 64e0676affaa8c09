import type { InboxItem } from '../../serve/admin/contract.ts'
import type { InboxService } from '../../serve/admin/service.ts'
import type { ProcessState } from '../process-state.ts'
import { type AdminContext, audited } from './context.ts'
import { createInbox, type Inbox, openDismissals } from './inbox.ts'
import { approvalItemId, type InboxContext, inboxSources } from './inbox-sources.ts'
import { createInboxWebhook, type InboxWebhookOptions } from './inbox-webhook.ts'

type OpenInboxOptions = InboxContext &
  Pick<InboxWebhookOptions, 'version' | 'clock' | 'log'> &
  Pick<ProcessState, 'approvals'>

/** Opens the inbox of this process, with its webhook. The items are only computed while somebody is interested. */
export function openInbox(options: OpenInboxOptions): Inbox {
  const { current, clock, log, version } = options
  using open = new DisposableStack()
  // The dismissals stay in the folder in which they were opened, even if a reload changes the setting.
  const dismissals = openDismissals(current().loaded.config.stores.path, log)
  const inbox = open.use(createInbox({ dismissals, redact: (text) => current().redactor.text(text), clock, log }))
  for (const source of inboxSources(options)) inbox.add(source)
  const url = () => current().loaded.config.inbox.webhook
  // Every process lists the approvals of all processes; only the one in which the call waits posts it.
  const isOwn = ({ id, kind }: InboxItem) =>
    kind !== 'approval' || options.approvals.list().some((approval) => approvalItemId(approval.id) === id)
  let webhook: Disposable | undefined
  /** Follows the setting, so that nothing is polled for a webhook that is not configured. */
  const follow = () => {
    const wanted = url() !== undefined
    if (wanted) webhook ??= createInboxWebhook({ inbox, isOwn, url, version, clock, log })
    else {
      webhook?.[Symbol.dispose]()
      webhook = undefined
    }
  }
  open.use(options.history.onEvent(follow))
  open.defer(() => webhook?.[Symbol.dispose]())
  follow()
  const opened = open.move()
  return { ...inbox, [Symbol.dispose]: () => opened.dispose() }
}

export const createInboxAdmin = ({ inbox, audit }: Pick<AdminContext, 'inbox' | 'audit'>): InboxService => ({
  inbox: inbox.view,
  async dismissItem(caller, id) {
    const action = { operation: 'dismiss_inbox_item', arguments: { id } }
    await audited(audit, caller, action, () => inbox.dismiss(id, caller.principal))
    return inbox.view()
  },
  onInbox: (listener) => inbox.onChange(listener),
})

import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { InboxItem } from '../../serve/admin/contract.ts'
import { postWithRetries } from '../../tools/sinks/webhook.ts'
import type { Inbox } from './inbox.ts'

export interface InboxWebhookOptions {
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

const maxWaiting = 200
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
    const body = { id: randomUUID(), source: 'toolway', version, items }
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
    for (const id of [...waiting.keys()].slice(0, Math.max(0, waiting.size - maxWaiting))) waiting.delete(id)
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

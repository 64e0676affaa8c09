import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { deadline, pause } from '../../core/deadline.ts'
import type { Log } from '../../core/log.ts'
import { jitteredBackoffMs } from '../../lib/backoff.ts'
import { basicAuthOf } from '../../lib/basic-auth.ts'
import { createHttpClient } from '../../lib/http-client.ts'
import type { InboxItem } from '../../serve/admin/contract.ts'
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
const attempts = 4
const timeoutMs = 10_000
const backoff = { firstMs: 1_000, maxMs: 30_000 }

/**
 * Posts new inbox items, and those that are open at the start. Items that wait are bounded; the oldest are dropped. Each
 * request has an idempotency key, so that the receiver can detect a repeated one. Redirects are not followed.
 */
export function createInboxWebhook(options: InboxWebhookOptions): Disposable {
  const { inbox, isOwn, url, version, clock, log, random } = options
  const stop = new AbortController()
  let waiting = new Map<string, InboxItem>()
  let sending = false

  const deliver = async (address: URL, items: readonly InboxItem[]): Promise<void> => {
    const body = JSON.stringify({ source: 'toolway', version, items })
    const authorization = basicAuthOf(address)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'toolway',
      'idempotency-key': hash('sha256', body),
      ...(authorization !== undefined && { authorization }),
    }
    await using client = createHttpClient(address, { headersTimeout: 0, bodyTimeout: 0 })
    for (let failures = 0; ; failures++) {
      const tooLate = () => new Error(`no response within ${timeoutMs / 1000} s (a fixed limit)`)
      using limit = deadline(clock, timeoutMs, tooLate, stop.signal)
      const path = address.pathname + address.search
      const request = { method: 'POST', path, headers, body, signal: limit.signal } as const
      const reason = await client.request(request).then(
        (response) => {
          response.body.on('error', () => {})
          response.body.destroy()
          return response.statusCode < 300 ? undefined : `HTTP ${response.statusCode}`
        },
        (thrown: unknown) => (thrown as NodeJS.ErrnoException).code ?? (thrown as Error).name,
      )
      if (reason === undefined) return
      stop.signal.throwIfAborted()
      const refused = /^HTTP [34]/.test(reason) && reason !== 'HTTP 429'
      if (refused || failures + 1 >= attempts) {
        log.warn({ reason, items: items.length }, 'could not deliver inbox items (inbox.webhook)')
        return
      }
      await pause(clock, jitteredBackoffMs(failures, backoff, random), stop.signal)
    }
  }

  const send = async () => {
    sending = true
    try {
      while (waiting.size > 0) {
        const items = [...waiting.values()]
        waiting = new Map()
        const address = url()
        if (address !== undefined) await deliver(new URL(address), items)
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

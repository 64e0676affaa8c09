import type { PendingApproval } from '../core/approval.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Approvals } from '../pipeline/approvals.ts'
import { chatText, postWithRetries } from '../tools/sinks/webhook.ts'

interface ApprovalWebhookOptions {
  readonly approvals: Approvals
  /** The configured URL; undefined if none is. */
  webhook(): string | undefined
  /** The dashboard's origin. */
  readonly dashboard: string
  redact(text: string): string
  readonly clock: Clock
  readonly log: Log
}

/** Maximum number of deliveries at a time. Further ones are dropped; the dashboard still shows the approvals. */
const maxDeliveries = 16
const delivery = { headers: {}, attempts: 3, timeout: 5_000 }
const timeoutKey = 'a fixed limit'

/**
 * Posts each new approval of this process to `approvals.webhook`. The arguments are left out, because the receiver may
 * be a chat that many people read; the link leads to them.
 */
export function notifyOfApprovals(options: ApprovalWebhookOptions): Disposable {
  const { approvals, webhook, clock, log } = options
  const stop = new AbortController()
  let running = 0

  const post = async (approval: PendingApproval, url: string) => {
    running++
    const config = { ...delivery, url }
    const posting = { config, timeoutKey, facts: { webhook: 'approvals' }, clock, log }
    try {
      const { attempt } = await postWithRetries(bodyOf(approval, options), posting, stop.signal)
      if (attempt.kind === 'acknowledged') return
      log.warn({ id: approval.id, reason: attempt.reason }, 'approvals.webhook did not accept an approval')
    } catch (cause) {
      if (!stop.signal.aborted) log.warn({ id: approval.id, err: cause }, 'could not post to approvals.webhook')
    } finally {
      running--
    }
  }

  const listening = approvals.onEvent((event) => {
    const url = event.kind === 'asked' ? webhook() : undefined
    if (event.kind !== 'asked' || url === undefined) return
    if (running < maxDeliveries) void post(event.approval, url)
    else log.warn({ id: event.approval.id }, 'too many deliveries to approvals.webhook; dropped one')
  })
  return {
    [Symbol.dispose]() {
      listening[Symbol.dispose]()
      stop.abort()
    },
  }
}

function bodyOf(approval: PendingApproval, { dashboard, redact }: ApprovalWebhookOptions) {
  const { id, call, agent, principal, server, tool, rule, askedAt, until } = approval
  const end = new Date(until).toISOString()
  const url = `${dashboard}/approvals`
  return {
    event: 'approval',
    id,
    call,
    agent,
    principal,
    server,
    tool: redact(tool),
    rule,
    askedAt: new Date(askedAt).toISOString(),
    until: end,
    text: chatText(`The agent ${agent} wants to call ${server}.${redact(tool)}. Answer by ${end}: ${url}`),
    url,
  }
}

import { randomUUID } from 'node:crypto'
import type { ApprovalAnswer, PendingApproval } from '../core/approval.ts'
import type { Clock } from '../core/clock.ts'
import type { PubSub } from '../core/cluster.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { jsonValue } from '../json/parse-json.ts'
import { createListeners } from '../lib/listen.ts'
import type { ApprovalEvent, Approvals, SessionGrant } from '../pipeline/approvals.ts'
import { chatText, postWithRetries } from '../tools/sinks/webhook.ts'

interface SharedApprovalsOptions {
  readonly approvals: Approvals
  readonly pubSub: PubSub | undefined
  readonly clock: Clock
  readonly log: Log
}

type ApprovalMessage =
  | ApprovalEvent
  /** Asks all processes for their approvals and grants, because the sender has just started. */
  | { readonly kind: 'hello'; readonly from: string }
  | { readonly kind: 'grants'; readonly to: string; readonly grants: readonly SessionGrant[] }
  | { readonly kind: 'waiting'; readonly ids: readonly string[] }
  | { readonly kind: 'answer'; readonly request: string; readonly id: string; readonly answer: ApprovalAnswer }
  | { readonly kind: 'answered'; readonly request: string; readonly accepted: boolean }

const approvalsTopic = 'approvals'
/** While approvals wait, their process says so every second. If it does not, it has died. */
const approvalBeatMs = 1_000
const approvalLostMs = 5_000
/** Messages can be lost, so each process repeats its approvals, and once its question for those of others. */
const repeatMs = 10_000
const answerMs = 5_000
/** Maximum number of other processes' approvals: as many as four processes may hold. */
const maxRemote = 1_024

/**
 * Makes approvals visible in all workers and replicas (B10, V8). A call waits in the process that runs it, and only
 * that process decides which answer was first; the others keep copies and forward answers. Approvals for sessions are
 * copied too, because requests of stateless clients may reach any process.
 */
export class SharedApprovals implements Disposable {
  readonly #options: SharedApprovalsOptions
  readonly #self = randomUUID()
  readonly #listeners = createListeners<[]>()
  readonly #subscriptions = new DisposableStack()
  readonly #remote = new Map<string, { readonly approval: PendingApproval; readonly seenAt: number }>()
  readonly #requests = new Map<string, { readonly id: string; settle(accepted: boolean): void }>()
  #timer: Disposable | undefined
  #repeatedAt: number

  constructor(options: SharedApprovalsOptions) {
    this.#options = options
    const { approvals, pubSub, clock } = options
    this.#repeatedAt = clock.monotonic()
    this.#subscriptions.use(
      approvals.onEvent((event) => {
        this.#send(event)
        if (pubSub && event.kind === 'asked') this.#beat()
        if (event.kind !== 'granted') this.#listeners.emit()
      }),
    )
    if (pubSub === undefined) return
    this.#subscriptions.use(
      pubSub.subscribe(approvalsTopic, (text) => this.#receive(jsonValue(text) as ApprovalMessage)),
    )
    const hello = () => this.#send({ kind: 'hello', from: this.#self })
    hello()
    this.#subscriptions.use(clock.after(repeatMs, hello))
  }

  list(): readonly PendingApproval[] {
    const remote = [...this.#remote.values()].map(({ approval }) => approval)
    return [...this.#options.approvals.list(), ...remote].sort((one, other) => one.askedAt - other.askedAt)
  }

  /** Gives an answer, wherever the call waits. Resolves with false if it no longer waits. */
  async answer(id: string, answer: ApprovalAnswer): Promise<boolean> {
    if (this.#options.approvals.answer(id, answer)) {
      this.#listeners.emit()
      return true
    }
    return this.#remote.has(id) ? this.#forward(id, answer) : false
  }

  /** A function of its own, because it is handed on. */
  readonly onChange = (listener: () => void): Disposable => this.#listeners.on(listener)

  #send(message: ApprovalMessage): void {
    this.#options.pubSub?.publish(approvalsTopic, JSON.stringify(message))
  }

  #sendOwn(): void {
    this.#repeatedAt = this.#options.clock.monotonic()
    for (const approval of this.#options.approvals.list()) this.#send({ kind: 'asked', approval })
  }

  /** Says that our approvals wait and drops those of processes that no longer say so, until none are left. */
  #beat(): void {
    const { approvals, clock } = this.#options
    this.#timer ??= clock.after(approvalBeatMs, () => {
      this.#timer = undefined
      const now = clock.monotonic()
      const ids = approvals.list().map(({ id }) => id)
      if (now - this.#repeatedAt >= repeatMs) this.#sendOwn()
      else if (ids.length > 0) this.#send({ kind: 'waiting', ids })
      const before = this.#remote.size
      for (const [id, { seenAt }] of this.#remote) if (now - seenAt >= approvalLostMs) this.#remote.delete(id)
      if (this.#remote.size < before) this.#listeners.emit()
      if (this.#remote.size > 0 || ids.length > 0) this.#beat()
    })
  }

  #receive(message: ApprovalMessage): void {
    const { approvals } = this.#options
    switch (message.kind) {
      case 'hello':
        // Only for the sender: others may have forgotten theirs in a reload.
        this.#send({ kind: 'grants', to: message.from, grants: approvals.grants() })
        this.#sendOwn()
        break
      case 'grants':
        if (message.to === this.#self) message.grants.forEach(approvals.addGrant)
        break
      case 'asked':
        this.#receiveApproval(message.approval)
        break
      case 'waiting': {
        const seenAt = this.#options.clock.monotonic()
        for (const id of message.ids) {
          const known = this.#remote.get(id)
          if (known) this.#remote.set(id, { ...known, seenAt })
        }
        break
      }
      case 'ended':
        // An answer that came too late gets no reply of its own.
        for (const { id, settle } of this.#requests.values()) if (id === message.id) settle(false)
        if (this.#remote.delete(message.id)) this.#listeners.emit()
        break
      case 'granted':
        approvals.addGrant(message.grant)
        break
      case 'answer': {
        const { request, id, answer } = message
        // Every process gets the message; only the one with the call replies.
        if (approvals.list().some((one) => one.id === id))
          this.#send({ kind: 'answered', request, accepted: approvals.answer(id, answer) })
        break
      }
      case 'answered':
        this.#requests.get(message.request)?.settle(message.accepted)
    }
  }

  #receiveApproval(approval: PendingApproval): void {
    const isNew = !this.#remote.has(approval.id)
    if (isNew && this.#remote.size >= maxRemote) return
    this.#remote.set(approval.id, { approval, seenAt: this.#options.clock.monotonic() })
    this.#beat()
    if (isNew) this.#listeners.emit()
  }

  async #forward(id: string, answer: ApprovalAnswer): Promise<boolean> {
    const request = randomUUID()
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#requests.set(request, { id, settle: resolve })
    using _timer = this.#options.clock.after(answerMs, () => reject(noApprovalReply()))
    this.#send({ kind: 'answer', request, id, answer })
    try {
      return await promise
    } catch (thrown) {
      this.#options.log.warn({ approval: id }, 'the process in which a call waits for approval did not reply')
      throw thrown
    } finally {
      this.#requests.delete(request)
    }
  }

  [Symbol.dispose](): void {
    this.#subscriptions.dispose()
    this.#timer?.[Symbol.dispose]()
  }
}

const noApprovalReply = () =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    'The process in which the call waits did not reply within 5 s: check whether the call still waits, and try again.',
  )

interface ApprovalWebhookOptions {
  readonly approvals: Approvals
  webhook(): string | undefined
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
  const open = new DisposableStack()
  let running = 0

  const post = async (approval: PendingApproval, url: string) => {
    running++
    const config = { ...delivery, url }
    const posting = { config, timeoutKey, facts: { webhook: 'approvals' }, clock, log }
    try {
      const { attempt } = await postWithRetries(approvalBody(approval, options), posting, stop.signal)
      if (attempt.kind === 'acknowledged') return
      log.warn({ id: approval.id, reason: attempt.reason }, 'approvals.webhook did not accept an approval')
    } catch (cause) {
      if (!stop.signal.aborted) log.warn({ id: approval.id, err: cause }, 'could not post to approvals.webhook')
    } finally {
      running--
    }
  }

  const notify = (event: ApprovalEvent) => {
    const url = event.kind === 'asked' ? webhook() : undefined
    if (event.kind !== 'asked' || url === undefined) return
    if (running < maxDeliveries) void post(event.approval, url)
    else log.warn({ id: event.approval.id }, 'too many deliveries to approvals.webhook; dropped one')
  }
  open.defer(() => stop.abort())
  open.use(approvals.onEvent(notify))
  return open
}

function approvalBody(approval: PendingApproval, { dashboard, redact }: ApprovalWebhookOptions) {
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

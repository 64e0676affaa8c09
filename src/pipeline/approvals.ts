import { randomUUID } from 'node:crypto'
import type { ApprovalAnswer, ApprovalNeed, ApprovalRecord, PendingApproval } from '../core/approval.ts'
import { type Caller, callerKey } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Budget } from '../core/limits/budget.ts'
import { listen } from '../lib/listen.ts'
import { setBounded } from '../lib/memoize.ts'

/** What a call asks for. The store adds the id and the times. */
export type NewApproval = Omit<PendingApproval, 'id' | 'askedAt' | 'until'>

/** An approval for a session. It covers one caller, one session, one tool and one rule. */
export interface SessionGrant {
  readonly key: string
  readonly session: string
  readonly by: string
  /** How long it is still valid; by default, a day. */
  readonly leftMs?: number
}

export type ApprovalEvent =
  | { readonly kind: 'asked'; readonly approval: PendingApproval }
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'granted'; readonly grant: SessionGrant }

/** The calls of this process that wait for a person, and the approvals that people gave for whole sessions (V8). */
export interface Approvals {
  /** Whether people can answer: true while `accept` is in effect. */
  readonly accepting: boolean
  /** Lets people answer until the returned object is disposed of, which ends all waiting. */
  accept(): Disposable
  /** Waits for the first answer, which the caller limits to `waitMs` with the signal. Rejects if the signal aborts, a budget is used up, or the gateway stops. */
  request(asked: NewApproval, waitMs: number, signal: AbortSignal): Promise<ApprovalAnswer>
  list(): readonly PendingApproval[]
  /** Gives an answer. Returns false if nothing waits under this id: the first answer counts. */
  answer(id: string, answer: ApprovalAnswer): boolean
  /** The approval that a person gave earlier for the call's session, if any. */
  grantedTo(call: GrantScope, need: ApprovalNeed): ApprovalRecord | undefined
  /** Adds a grant that was given in another process. */
  addGrant(grant: SessionGrant): void
  /** The grants that are valid, for a process that has just started. */
  grants(): readonly SessionGrant[]
  sessionEnded(session: string): void
  /** Forgets all approvals for sessions, because the rules have changed. */
  forgetGrants(): void
  onEvent(listener: (event: ApprovalEvent) => void): Disposable
}

interface GrantScope {
  readonly caller: Pick<Caller, 'principal' | 'agent' | 'session'>
  readonly entry: Pick<Entry, 'server' | 'name'>
}

/** Approvals for sessions end after a day, even if the session goes on. */
const grantMs = 24 * 3_600_000
/** Maximum number of approvals for sessions. If there are more, the oldest is forgotten and has to be given again. */
const maxGrants = 2_000

interface Waiting {
  readonly approval: PendingApproval
  answer(answer: ApprovalAnswer): void
  stop(error: Error): void
}

export function createApprovals({ budget, clock }: { readonly budget: Budget; readonly clock: Clock }): Approvals {
  const waiting = new Map<string, Waiting>()
  const grants = new Map<string, { readonly grant: SessionGrant; readonly until: number }>()
  const listeners = new Set<(event: ApprovalEvent) => void>()
  let accepting = false

  const emit = (event: ApprovalEvent) => {
    for (const listener of listeners) listener(event)
  }

  const addGrant = (grant: SessionGrant) =>
    setBounded(grants, grant.key, { grant, until: clock.monotonic() + (grant.leftMs ?? grantMs) }, maxGrants)

  return {
    get accepting() {
      return accepting
    },
    accept() {
      accepting = true
      return {
        [Symbol.dispose]() {
          accepting = false
          for (const { stop } of [...waiting.values()]) stop(stopping())
        },
      }
    },
    async request(asked, waitMs, signal) {
      if (!accepting) throw stopping()
      signal.throwIfAborted()
      budget.claim(asked.principal)
      const askedAt = clock.now()
      const approval: PendingApproval = { ...asked, id: randomUUID(), askedAt, until: askedAt + waitMs }
      const { promise, resolve, reject } = Promise.withResolvers<ApprovalAnswer>()
      waiting.set(approval.id, { approval, answer: resolve, stop: reject })
      try {
        emit({ kind: 'asked', approval })
        return await endWith(signal, promise)
      } finally {
        waiting.delete(approval.id)
        budget.give(asked.principal)
        emit({ kind: 'ended', id: approval.id })
      }
    },
    list: () => [...waiting.values()].map(({ approval }) => approval),
    answer(id, answer) {
      const found = waiting.get(id)
      if (!found) return false
      // Remove it now, because the call continues only after the current tick and a second answer must not count.
      waiting.delete(id)
      const { approval } = found
      if (answer.decision === 'session') {
        const scope = { caller: approval, entry: { server: approval.server, name: approval.tool } }
        const grant = { key: keyOf(scope, approval), session: approval.session, by: answer.by }
        addGrant(grant)
        emit({ kind: 'granted', grant })
      }
      found.answer(answer)
      return true
    },
    grantedTo(call, need) {
      if (grants.size === 0) return undefined
      const key = keyOf(call, need)
      const found = grants.get(key)
      if (!found) return undefined
      if (found.until > clock.monotonic()) return { decision: 'session', by: found.grant.by }
      grants.delete(key)
      return undefined
    },
    addGrant,
    grants: () =>
      [...grants.values()]
        .map(({ grant, until }) => ({ ...grant, leftMs: until - clock.monotonic() }))
        .filter(({ leftMs }) => leftMs > 0),
    sessionEnded(session) {
      for (const [key, { grant }] of grants) if (grant.session === session) grants.delete(key)
    },
    forgetGrants: () => grants.clear(),
    onEvent: (listener) => listen(listeners, listener),
  }
}

/** Includes who may answer, so that an approval is not reused for calls that other people must approve. */
const keyOf = ({ caller, entry }: GrantScope, { rule, by }: ApprovalNeed): string =>
  JSON.stringify([callerKey(caller), entry.server, entry.name, rule, by])

const stopping = () =>
  new ToolwayError('OVERLOADED', 'The gateway is stopping, so nobody can approve this call: try again later.', {
    retryAfterMs: 1_000,
  })

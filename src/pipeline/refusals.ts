import { hash, randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { callAgain } from '../lib/duration.ts'
import { speltOut } from '../lib/hidden-characters.ts'

export type Who = Pick<AuditSubject, 'agent' | 'principal' | 'anonymous' | 'address'>

/** The number of earlier refusals that have no record of their own. */
export type Note = Pick<AuditEnd, 'suppressed'>

/** Whether a refusal is audited; if it is not, how long until the next one will be. */
type Counted =
  | { readonly recorded: true; readonly note: Note }
  | { readonly recorded: false; readonly retryAfterMs: number }

/**
 * Keeps refusals from filling the disk (F11, B7): above a rate that normal use does not reach, they are counted instead
 * of being audited one by one. Allowed calls are not counted.
 */
export interface Refusals extends Disposable {
  count(who: Who): Counted
  /**
   * Like `count`, for requests without a valid credential. Each error code has its own bucket, so that a flood of wrong
   * tokens cannot hide a refused Host or Origin.
   */
  countUnauthenticated(who: Who, code: ErrorCode): Counted
  /** Like `count`, for callers that can wait: throws RATE_LIMITED if the refusal is not audited. */
  admit(who: Who): Note
  /** For each flood that is over, writes the number of suppressed refusals. Every operation calls this. */
  settle(): void
}

/** Refusals above these limits are only counted. A model that searches a large catalog stays far below both. */
export const burst = 600
export const perMinute = 600

/** Burst for requests without a credential. Lower than `burst`, because legitimate clients send few of them. */
const strangersBurst = 10

/**
 * If suppressed refusals are still unreported after this time, the flood is over: a bucket gets its next token sooner,
 * so any further refusal would have been audited, together with the count.
 */
const overAfterMs = 1_000

/** How many accounts are inspected per refusal to find some that can be evicted because their bucket is full. */
const maxInspected = 8

const maxKey = 256

interface Account {
  readonly bucket: Bucket
  suppressed: number
  since: number
  who: Who
  /** Whether several principals use this account; if so, `who` is a placeholder. */
  readonly shared: boolean
}

interface RefusalsOptions {
  readonly audit: Audit
  readonly clock: Clock
  /** Maximum number of principals with their own bucket; all further principals share one bucket. */
  readonly maxPrincipals?: number
}

export function createRefusals({ audit, clock, maxPrincipals = 10_000 }: RefusalsOptions): Refusals {
  const accounts = new Map<string, Account>()
  const strangers = new Map<ErrorCode, Account>()
  const others = account(burst, { agent: '(several)', principal: '(several)' }, true)
  /** Accounts whose suppressed refusals have not been recorded yet, oldest first. */
  const owing = new Set<Account>()

  const makeRoom = (now: number) => {
    let looked = 0
    for (const [key, one] of accounts) {
      if (looked++ === maxInspected) return
      accounts.delete(key)
      // Keep an account that is still needed, but move it to the end, so that the next refusal inspects other accounts.
      if (one.bucket.fullAt > now || one.suppressed > 0) accounts.set(key, one)
    }
  }

  const accountOf = (who: Who, now: number): Account => {
    const key = who.principal.length > maxKey ? hash('sha256', who.principal) : who.principal
    const known = accounts.get(key)
    if (known) return known
    if (accounts.size >= maxPrincipals) makeRoom(now)
    if (accounts.size >= maxPrincipals) return others
    const created = account(burst, who)
    accounts.set(key, created)
    return created
  }

  const strangersWith = (code: ErrorCode): Account => {
    const one = strangers.get(code) ?? account(strangersBurst, { agent: '(none)', principal: 'unknown' }, true)
    strangers.set(code, one)
    return one
  }

  const collect = (one: Account): Note => {
    const { suppressed } = one
    if (suppressed === 0) return {}
    one.suppressed = 0
    owing.delete(one)
    return { suppressed }
  }

  const draw = (one: Account, now: number, who: Who): Counted => {
    const retryAfterMs = take(one.bucket, now)
    if (retryAfterMs === 0) return { recorded: true, note: collect(one) }
    if (one.suppressed++ === 0) {
      one.since = now
      owing.add(one)
    }
    if (!one.shared) one.who = who
    return { recorded: false, retryAfterMs }
  }

  const report = (one: Account) => {
    const end = { decision: 'DENY', reason: 'rate_limited', code: 'RATE_LIMITED' } as const
    recordEnd(audit, { ...one.who, operation: 'refusals', ...end, ...collect(one) })
  }

  const settle = (now: number) => {
    for (const one of owing) {
      if (now - one.since < overAfterMs) return
      report(one)
    }
  }

  const counted = (of: (now: number) => Account, who: Who): Counted => {
    const now = clock.monotonic()
    // Draw a token first: if this refusal is audited, its record includes the refusals suppressed before it.
    const outcome = draw(of(now), now, who)
    settle(now)
    return outcome
  }
  const count = (who: Who) => counted((now) => accountOf(who, now), who)

  return {
    count,
    countUnauthenticated: (who, code) => counted(() => strangersWith(code), who),
    admit(who) {
      const outcome = count(who)
      if (outcome.recorded) return outcome.note
      throw tooMany(outcome.retryAfterMs)
    },
    settle() {
      if (owing.size > 0) settle(clock.monotonic())
    },
    [Symbol.dispose]() {
      for (const one of owing) report(one)
    },
  }
}

/** Writes a record without waiting for it; the audit writer logs its own failures. */
function recordEnd(audit: Audit, event: Omit<AuditEnd, 'call' | 'write' | 'is_error' | 'latency_ms'>): void {
  audit.end({ call: randomUUID(), ...event, write: false, is_error: true, latency_ms: 0 })?.catch(() => {})
}

const account = (burst: number, who: Who, shared = false): Account => ({
  bucket: newBucket(burst, perMinute),
  suppressed: 0,
  since: 0,
  who,
  shared,
})

function tooMany(retryAfterMs: number): ToolwayError {
  const sentence = `More than ${perMinute} of your calls were refused within a minute, so further refusals give no reason; ${callAgain(retryAfterMs)}, and use only tools that are listed for you.`
  return new ToolwayError('RATE_LIMITED', sentence, { retryAfterMs })
}

/** A token bucket with continuous refill, stored as the time at which it is full again. */
interface Bucket {
  fullAt: number
  readonly oneMs: number
  readonly allMs: number
}

const newBucket = (burst: number, perMinute: number): Bucket => {
  const oneMs = 60_000 / perMinute
  return { fullAt: Number.NEGATIVE_INFINITY, oneMs, allMs: burst * oneMs }
}

/** Takes one token. Returns 0, or the milliseconds until a token is available. */
function take(bucket: Bucket, now: number): number {
  const { oneMs, allMs } = bucket
  const fullAt = Math.max(bucket.fullAt, now)
  const missing = fullAt + oneMs - now - allMs
  bucket.fullAt = missing > 0 ? fullAt : fullAt + oneMs
  return missing > 0 ? Math.ceil(missing) : 0
}

/**
 * Audits and logs rejected requests (F11): missing credentials, an agent that the principal may not act as, malformed
 * messages. A rejection that is not audited is not logged either, so that clients without a credential cannot fill the
 * disk or drown out others.
 */
export function recordRejections(audit: Audit, refusals: Refusals, log: Log): Access['rejected'] {
  return ({ address, principal, asked, detail, malformed, code }) => {
    const who = { agent: '(none)', principal: principal ?? 'unknown', address }
    const counted = principal === undefined ? refusals.countUnauthenticated(who, code) : refusals.count(who)
    if (!counted.recorded) return
    const shown = detail === undefined ? undefined : bounded(detail)
    const facts = { code, address, principal, agent: asked, detail: shown, ...counted.note }
    log.warn(facts, malformed ? 'refused a malformed request' : 'refused a request')
    recordEnd(audit, {
      ...who,
      operation: malformed ? 'malformed_request' : 'authenticate',
      asked,
      detail: shown,
      brief: true,
      decision: malformed ? 'ERROR' : 'DENY',
      reason: malformed ? 'malformed_request' : code.toLowerCase(),
      code,
      ...counted.note,
    })
  }
}

const maxDetail = 256

/** Truncates untrusted text and spells out its control characters, so that it cannot fill the log or forge a log line. */
const bounded = (text: string): string =>
  speltOut(text.length > maxDetail ? `${text.slice(0, maxDetail)}…` : text).toWellFormed()

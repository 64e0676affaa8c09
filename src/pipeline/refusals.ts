import { hash, randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { TokenBucket, type TokenRate } from '../core/limits/token-bucket.ts'
import type { Log } from '../core/log.ts'
import { speltOut } from '../lib/characters.ts'
import { callAgain } from '../lib/duration.ts'

export type Who = Pick<AuditSubject, 'agent' | 'principal' | 'anonymous' | 'address'>

/** The number of earlier refusals that have no record of their own. */
export type Note = Pick<AuditEnd, 'suppressed'>

/** Whether a refusal is audited; if it is not, how long until the next one will be. */
type Counted =
  | { readonly recorded: true; readonly note: Note }
  | { readonly recorded: false; readonly retryAfterMs: number }

/** Refusals above these limits are only counted. A model that searches a large catalog stays far below both. */
export const burst = fixedLimits.refusals.value
export const perMinute = fixedLimits.refusalsPerMinute.value
const intervalMs = 60_000 / perMinute

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

interface RefusalsOptions {
  readonly audit: Audit
  readonly clock: Clock
  /** Maximum number of principals with their own bucket; all further principals share one bucket. */
  readonly maxPrincipals?: number
}

/**
 * Keeps refusals from filling the disk (F11, B7): above a rate that normal use does not reach, they are counted instead
 * of being audited one by one. Allowed calls are not counted.
 */
export class Refusals implements Disposable {
  readonly #audit: Audit
  readonly #clock: Clock
  readonly #maxPrincipals: number
  readonly #accounts = new Map<string, Account>()
  readonly #strangers = new Map<ErrorCode, Account>()
  readonly #others = new Account(burst, { agent: '(several)', principal: '(several)' }, true)
  /** Accounts whose suppressed refusals have not been recorded yet, oldest first. */
  readonly #owing = new Set<Account>()

  constructor({ audit, clock, maxPrincipals = 10_000 }: RefusalsOptions) {
    this.#audit = audit
    this.#clock = clock
    this.#maxPrincipals = maxPrincipals
  }

  count(who: Who): Counted {
    return this.#countIn(this.#accountOf(who), who)
  }

  /**
   * Like `count`, for requests without a valid credential. Each error code has its own bucket, so that a flood of wrong
   * tokens cannot hide a refused Host or Origin.
   */
  countUnauthenticated(who: Who, code: ErrorCode): Counted {
    const known = this.#strangers.get(code)
    const account = known ?? new Account(strangersBurst, { agent: '(none)', principal: 'unknown' }, true)
    this.#strangers.set(code, account)
    return this.#countIn(account, who)
  }

  /** Like `count`, for callers that can wait: throws RATE_LIMITED if the refusal is not audited. */
  admit(who: Who): Note {
    const outcome = this.count(who)
    if (outcome.recorded) return outcome.note
    throw tooMany(outcome.retryAfterMs)
  }

  /** For each flood that is over, writes the number of suppressed refusals. Every operation calls this. */
  settle(): void {
    if (this.#owing.size > 0) this.#settleAt(this.#clock.monotonic())
  }

  [Symbol.dispose](): void {
    for (const account of this.#owing) this.#report(account)
  }

  #countIn(account: Account, who: Who): Counted {
    const now = this.#clock.monotonic()
    // Take a token first: if this refusal is audited, its record includes the refusals suppressed before it.
    const retryAfterMs = account.bucket.take(account.rate, now)
    const recorded = retryAfterMs === 0
    const counted: Counted = recorded ? { recorded, note: this.#collect(account) } : { recorded, retryAfterMs }
    if (!recorded) {
      if (account.suppressed++ === 0) account.since = now
      this.#owing.add(account)
      if (!account.isShared) account.who = who
    }
    this.#settleAt(now)
    return counted
  }

  #accountOf(who: Who): Account {
    const key = who.principal.length > maxKey ? hash('sha256', who.principal) : who.principal
    const known = this.#accounts.get(key)
    if (known) return known
    if (this.#accounts.size >= this.#maxPrincipals) this.#makeRoom()
    if (this.#accounts.size >= this.#maxPrincipals) return this.#others
    const created = new Account(burst, who)
    this.#accounts.set(key, created)
    return created
  }

  #makeRoom(): void {
    const now = this.#clock.monotonic()
    let inspected = 0
    for (const [key, account] of this.#accounts) {
      if (inspected++ === maxInspected) return
      this.#accounts.delete(key)
      // Keep an account that is still needed, but move it to the end, so that the next refusal inspects other accounts.
      if (!account.bucket.isFull(now) || account.suppressed > 0) this.#accounts.set(key, account)
    }
  }

  #collect(account: Account): Note {
    const { suppressed } = account
    account.suppressed = 0
    this.#owing.delete(account)
    return suppressed === 0 ? {} : { suppressed }
  }

  #settleAt(now: number): void {
    for (const account of this.#owing) {
      if (now - account.since < overAfterMs) return
      this.#report(account)
    }
  }

  #report(account: Account): void {
    const end = { decision: 'DENY', reason: 'rate_limited', code: 'RATE_LIMITED' } as const
    recordEnd(this.#audit, { ...account.who, operation: 'refusals', ...end, ...this.#collect(account) })
  }
}

/** The refusals of one principal, or of several that share an account; then `who` is a placeholder. */
class Account {
  readonly bucket = new TokenBucket()
  readonly rate: TokenRate
  readonly isShared: boolean
  who: Who
  suppressed = 0
  since = 0

  constructor(burst: number, who: Who, isShared = false) {
    this.rate = { burst, intervalMs }
    this.who = who
    this.isShared = isShared
  }
}

/** Writes a record without waiting for it; the audit writer logs its own failures. */
function recordEnd(audit: Audit, event: Omit<AuditEnd, 'call' | 'write' | 'is_error' | 'latency_ms'>): void {
  audit.end({ call: randomUUID(), ...event, write: false, is_error: true, latency_ms: 0 })?.catch(() => {})
}

function tooMany(retryAfterMs: number): ToolwayError {
  const sentence = `More than ${perMinute} of your calls were refused within a minute, so further refusals give no reason; ${callAgain(retryAfterMs)}, and use only tools that are listed for you.`
  return new ToolwayError('RATE_LIMITED', sentence, { retryAfterMs })
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

import { hash, randomUUID } from 'node:crypto'
import type { Access } from '../core/access.ts'
import type { Audit, AuditEnd, AuditSubject } from '../core/audit.ts'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { callAgain } from '../lib/duration.ts'

/** Whom a refusal is about, as its record says it. */
export type Who = Pick<AuditSubject, 'agent' | 'principal' | 'anonymous' | 'address'>

/** What the record of a refusal tells of those before it that have none. */
export type Note = Pick<AuditEnd, 'suppressed'>

/** Whether a refusal is written down; if not, when one will be again. */
export type Counted =
  | { readonly recorded: true; readonly note: Note }
  | { readonly recorded: false; readonly retryAfterMs: number }

/**
 * Keeps refusals from filling the disk (F11, B7): whoever is refused more often than anybody honest is counted instead
 * of written down one by one. What is allowed is never counted here.
 */
export interface Refusals extends Disposable {
  /** One more refusal of a principal. */
  count(who: Who): Counted
  /**
   * The same of somebody without a valid credential. They share one bucket for each code, so that a flood of wrong
   * tokens does not hide a refused Host or Origin.
   */
  countStranger(who: Who, code: ErrorCode): Counted
  /** As `count`, for whoever can be told to wait: throws RATE_LIMITED where the refusal is not written down. */
  admit(who: Who): Note
  /** To be called by every operation: what a flood that is over still owes is written down. */
  settle(): void
}

/**
 * Refusals in one go and without a pause before they are counted only. A model that searches its way through a large
 * catalog stays far below either.
 */
export const burst = 600
export const perMinute = 600

/** A door sees strangers one by one, and none of them needs as much. */
const strangersBurst = 10

/** Buckets refill faster than that: who is still owed a record then has stopped. */
const overAfterMs = 1_000

/** Principals with refusals in the last minute; those beyond share one bucket. */
const maxPrincipals = 10_000

/** How many buckets one refusal looks through for a full one when there is no room. */
const looksThrough = 8

const maxKey = 256

/** The refusals that one bucket counts. */
interface Account {
  readonly bucket: Bucket
  suppressed: number
  /** When the first of those was. */
  since: number
  who: Who
  /** By several, so that `who` stands for all of them. */
  readonly shared: boolean
}

export interface RefusalsOptions {
  readonly audit: Audit
  readonly clock: Clock
  readonly most?: number
}

export function createRefusals({ audit, clock, most = maxPrincipals }: RefusalsOptions): Refusals {
  const accounts = new Map<string, Account>()
  const strangers = new Map<ErrorCode, Account>()
  const others = account(burst, { agent: '(several)', principal: '(several)' }, true)
  /** Those that are owed a record, the longest first. */
  const owing = new Set<Account>()

  const makeRoom = (now: number) => {
    let looked = 0
    for (const [key, one] of accounts) {
      if (looked++ === looksThrough) return
      accounts.delete(key)
      // Behind the others, so that the next refusal looks at those.
      if (!isFull(one.bucket, now) || one.suppressed > 0) accounts.set(key, one)
    }
  }

  const accountOf = (who: Who, now: number): Account => {
    const key = who.principal.length > maxKey ? hash('sha256', who.principal) : who.principal
    const known = accounts.get(key)
    if (known) return known
    if (accounts.size >= most) makeRoom(now)
    if (accounts.size >= most) return others
    const made = account(burst, who)
    accounts.set(key, made)
    return made
  }

  const strangersWith = (code: ErrorCode): Account => {
    const known = strangers.get(code)
    if (known) return known
    const made = account(strangersBurst, { agent: '(none)', principal: 'unknown' }, true)
    strangers.set(code, made)
    return made
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

  const tell = (one: Account) => {
    const written = audit.end({
      call: randomUUID(),
      ...one.who,
      operation: 'refusals',
      write: false,
      decision: 'DENY',
      reason: 'rate_limited',
      code: 'RATE_LIMITED',
      is_error: true,
      latency_ms: 0,
      ...collect(one),
    })
    // Nobody waits for it, and whoever writes the records tells the log that it cannot.
    written?.catch(() => {})
  }

  const settle = (now: number) => {
    for (const one of owing) {
      if (now - one.since < overAfterMs) return
      tell(one)
    }
  }

  const counted = (of: (now: number) => Account, who: Who): Counted => {
    const now = clock.monotonic()
    // Its own record first, which tells of what was suppressed before it.
    const outcome = draw(of(now), now, who)
    settle(now)
    return outcome
  }
  const count = (who: Who) => counted((now) => accountOf(who, now), who)

  return {
    count,
    countStranger: (who, code) => counted(() => strangersWith(code), who),
    admit(who) {
      const outcome = count(who)
      if (outcome.recorded) return outcome.note
      throw tooMany(outcome.retryAfterMs)
    },
    settle() {
      if (owing.size > 0) settle(clock.monotonic())
    },
    [Symbol.dispose]() {
      for (const one of owing) tell(one)
    },
  }
}

const account = (most: number, who: Who, shared = false): Account => ({
  bucket: newBucket(most, perMinute),
  suppressed: 0,
  since: 0,
  who,
  shared,
})

function tooMany(retryAfterMs: number): ToolwayError {
  const sentence = `You were refused more than ${perMinute} times a minute, so the reason is no longer told each time; ${callAgain(retryAfterMs)}, and only what is listed for you.`
  return new ToolwayError('RATE_LIMITED', sentence, { retryAfterMs })
}

/** A bucket that refills all the time, kept as the one moment at which it would be full again. */
interface Bucket {
  fullAt: number
  /** How long one takes to come back, and all of them. */
  readonly oneMs: number
  readonly allMs: number
}

/** A bucket that nobody has drawn from. */
const newBucket = (burst: number, perMinute: number): Bucket => {
  const oneMs = 60_000 / perMinute
  return { fullAt: Number.NEGATIVE_INFINITY, oneMs, allMs: burst * oneMs }
}

const isFull = ({ fullAt }: Bucket, now: number): boolean => fullAt <= now

/** Takes one; where none is left, the milliseconds until one is. */
function take(bucket: Bucket, now: number): number {
  const { oneMs, allMs } = bucket
  const fullAt = Math.max(bucket.fullAt, now)
  const missing = fullAt + oneMs - now - allMs
  bucket.fullAt = missing > 0 ? fullAt : fullAt + oneMs
  return missing > 0 ? Math.ceil(missing) : 0
}

/**
 * Writes down who was turned away at a door (F11), for lack of a credential, for an agent they may not be, or for a
 * message that breaks the protocol, and tells the operator. Whoever has no credential must not be able to fill the
 * disk, nor to drown those who have one: what is not recorded is not logged either.
 */
export function recordRejections(audit: Audit, refusals: Refusals, log: Log): Access['rejected'] {
  return ({ address, principal, asked, detail, malformed, code }) => {
    const who = { agent: '(none)', principal: principal ?? 'unknown', ...(address !== undefined && { address }) }
    const counted = principal === undefined ? refusals.countStranger(who, code) : refusals.count(who)
    if (!counted.recorded) return
    const reason = malformed ? 'malformed_request' : code.toLowerCase()
    const told = { code, address, principal, agent: asked, detail: detail && bounded(detail), ...counted.note }
    log.warn(told, malformed ? 'Refused a malformed request' : 'Refused a request')
    const end = audit.end({
      call: randomUUID(),
      ...who,
      operation: malformed ? 'malformed_request' : 'authenticate',
      ...(asked !== undefined && { asked }),
      ...(detail !== undefined && { detail: bounded(detail) }),
      write: false,
      brief: true,
      decision: malformed ? 'ERROR' : 'DENY',
      reason,
      code,
      is_error: true,
      latency_ms: 0,
      ...counted.note,
    })
    // They are turned away whether or not that can be written down.
    end?.catch(() => {})
  }
}

const maxDetail = 256

/** What a stranger sent is cut and escaped, so that it can neither fill a log nor pose as another line of it. */
const bounded = (text: string): string =>
  JSON.stringify(text.length > maxDetail ? `${text.slice(0, maxDetail)}…` : text).slice(1, -1)

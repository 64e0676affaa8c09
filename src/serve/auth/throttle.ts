import { isIPv6 } from 'node:net'
import type { AuthConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { TokenBuckets } from '../../core/limits/token-bucket.ts'
import { HttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import type { Authenticate, AuthIdentity } from './identity.ts'

/**
 * Authenticates a request and waits for its caller's turn. Throws a 429 after too many invalid
 * credentials from one address.
 */
export type Admit = (
  authorization: string | undefined,
  request: ReceivedRequest,
) => AuthIdentity | Promise<AuthIdentity>

export type FailureSettings = Pick<AuthConfig, 'maxFailures' | 'failureInterval'>

/**
 * Limit for signature checks per address. Tokens that are not cached need a check, which costs a hundred times as much
 * as comparing a hash. Successful checks are refunded, so only failed checks and those in progress count.
 */
const signatures = { burst: 50, intervalMs: 100 }

export const throttleRule = 'auth.maxFailures'

/** Limits invalid credentials per address, but never valid ones: users behind a proxy must not lock each other out. */
export function createAdmit(options: {
  readonly authenticate: Authenticate
  settings(): FailureSettings
  addressOf(request: ReceivedRequest): string | undefined
  /** Returns what a caller's next request has to wait for. */
  turnOf?(principal: string): Promise<void> | undefined
  readonly clock: Clock
}): Admit {
  const { authenticate, settings, addressOf, turnOf, clock } = options
  const failures = new TokenBuckets(maxNetworks)
  const checks = new TokenBuckets(maxNetworks)

  const failed = (thrown: unknown, request: ReceivedRequest): unknown => {
    const { maxFailures: burst, failureInterval: intervalMs } = settings()
    if (!isGuess(thrown) || burst === 0) return thrown
    const waitMs = failures.take(networkOf(addressOf(request) ?? ''), { burst, intervalMs }, clock.monotonic())
    return waitMs > 0 ? tooMany(waitMs) : thrown
  }

  const inTurn = (identity: AuthIdentity): AuthIdentity | Promise<AuthIdentity> =>
    turnOf?.(identity.principal)?.then(() => identity) ?? identity

  const admit: Admit = (authorization, request) => {
    // A request without a credential does not try to guess one, so it is not counted.
    if (authorization === undefined) return authenticate(authorization)
    /** The network for which a signature check was counted; undefined if none was. */
    let network: string | undefined
    const beforeSignature = () => {
      if (settings().maxFailures === 0) return
      const from = networkOf(addressOf(request) ?? '')
      const waitMs = checks.take(from, signatures, clock.monotonic())
      if (waitMs > 0) throw tooMany(waitMs)
      network = from
    }
    const takeBack = () => {
      if (network !== undefined) checks.giveBack(network, signatures, clock.monotonic())
    }
    try {
      const identity = authenticate(authorization, beforeSignature)
      if (!(identity instanceof Promise)) return identity
      return identity.then(
        (admitted) => {
          takeBack()
          return admitted
        },
        (thrown: unknown) => {
          if (!isGuess(thrown)) takeBack()
          throw failed(thrown, request)
        },
      )
    } catch (thrown) {
      throw failed(thrown, request)
    }
  }
  return (authorization, request) => {
    const identity = admit(authorization, request)
    return identity instanceof Promise ? identity.then(inTurn) : inTurn(identity)
  }
}

/** Whether an error counts as a guess. An expired credential does not: its holder needs the 401 to get a new one. */
const isGuess = (thrown: unknown): boolean =>
  thrown instanceof HttpError && thrown.status === 401 && thrown.details.genuine !== true

const tooMany = (retryAfterMs: number): HttpError => {
  const seconds = Math.ceil(retryAfterMs / 1000)
  const sentence = `Too many invalid credentials from this address (auth.maxFailures): try again in ${seconds} s.`
  return HttpError.of('RATE_LIMITED', sentence, { retryAfterMs, rule: throttleRule })
}

/** Maximum number of networks whose attempts are counted, to bound memory. */
const maxNetworks = 10_000

/** The network that an address belongs to. For IPv6, this is the /64 network: one host usually owns all of it. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const [before = '', after] = plain.split('::')
  const start = before === '' ? [] : before.split(':')
  if (after === undefined) return start.slice(0, 4).join(':')
  const end = after === '' ? 0 : after.split(':').length
  const groups = [...start, ...Array<string>(Math.max(0, 8 - start.length - end)).fill('0'), ...after.split(':')]
  return groups.slice(0, 4).join(':')
}

/** Maximum number of one caller's requests that start in one iteration of an event loop that is shared. */
const maxPerIteration = 4

/** How long after another caller's request the loop counts as shared. */
const sharedMs = 1_000

/** Requests that keep the loop busy for longer are followed by a rest of their caller, so many times as long. */
const longMs = 10
const restFactor = 4
const maxRestMs = 1_000

/** Time for turns. It depends on the speed of the machine, so it is real even if tests control the clock. */
const realTime = {
  now: () => performance.now(),
  /** How long this thread has been busy, without the time in which other processes ran. */
  busy() {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  },
  after: (ms: number, run: () => void): void => void setTimeout(run, ms).unref(),
}

/**
 * Shares the event loop fairly among callers (V6). Otherwise, hundreds of a fast caller's requests would start in each
 * iteration, and delay the responses to other callers, which take several iterations. A caller whose requests take long
 * gets a fifth of the loop's time. Returns undefined if the caller's next request may start immediately. A caller's
 * requests keep their order.
 */
export function createRequestTurns(time = realTime) {
  const begun = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()
  /** Callers whose requests are measured, and until when; `restsUntil` is set if one of them took long. */
  const slow = new Map<string, { readonly until: number; readonly restsUntil?: number }>()
  let last: string | undefined
  let changedAt = Number.NEGATIVE_INFINITY
  let isScheduled = false
  /** The latest request of this iteration that did not wait. */
  let latest: { readonly caller: string; readonly at: number } | undefined

  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(next)
  }

  const isShared = (now: number): boolean => now - changedAt <= sharedMs

  const isSlow = (caller: string, now: number): boolean => {
    const known = slow.get(caller)
    if (known === undefined || known.until > now) return known !== undefined
    slow.delete(caller)
    return false
  }

  const forgetOld = (now: number) => {
    for (const caller of slow.keys()) isSlow(caller, now)
  }

  /** The time since a request includes other work, so it is only a reason to let the caller's next ones be measured. */
  const suspect = (now: number) => {
    if (latest && now - latest.at > longMs && !slow.has(latest.caller)) {
      forgetOld(now)
      slow.set(latest.caller, { until: now + sharedMs })
    }
    latest = undefined
  }

  const next = () => {
    isScheduled = false
    const now = time.now()
    suspect(now)
    begun.clear()
    for (const caller of waiting.keys()) {
      if ((slow.get(caller)?.restsUntil ?? 0) > now) continue
      let start = 0
      // Node runs both in one phase of the loop, so only what these requests do without waiting is measured.
      setImmediate(() => {
        start = time.busy()
        beginNext(caller, slow.get(caller)?.restsUntil === undefined ? maxPerIteration : 1)
      })
      setImmediate(() => rest(caller, time.busy() - start))
      schedule()
    }
  }

  const beginNext = (caller: string, count: number) => {
    const requests = waiting.get(caller) ?? []
    const due = requests.splice(0, count)
    if (requests.length === 0) waiting.delete(caller)
    for (const begin of due) begin()
  }

  const rest = (caller: string, tookMs: number) => {
    const now = time.now()
    if (tookMs <= longMs || !isShared(now)) return
    const ms = Math.min(tookMs * restFactor, maxRestMs)
    forgetOld(now)
    slow.set(caller, { until: now + ms + sharedMs, restsUntil: now + ms })
    // Timers may end a fraction of a millisecond early, and nothing else would begin the requests that wait.
    time.after(Math.ceil(ms) + 1, schedule)
  }

  return (caller: string): Promise<void> | undefined => {
    const now = time.now()
    suspect(now)
    const requests = waiting.get(caller)
    const othersWait = waiting.size > (requests ? 1 : 0)
    if (othersWait || (last !== undefined && caller !== last)) changedAt = now
    last = caller
    if (requests === undefined) {
      const count = begun.get(caller) ?? 0
      if (!isShared(now) || (count < maxPerIteration && !isSlow(caller, now))) {
        begun.set(caller, count + 1)
        latest = { caller, at: now }
        schedule()
        return undefined
      }
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    if (requests) requests.push(resolve)
    else waiting.set(caller, [resolve])
    schedule()
    return promise
  }
}

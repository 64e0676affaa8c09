import { isIPv6 } from 'node:net'
import type { AuthConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { TokenBuckets } from '../../core/limits/token-bucket.ts'
import type { RequestTurns } from '../../core/limits/turns.ts'
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
  readonly turns?: RequestTurns
  readonly clock: Clock
}): Admit {
  const { authenticate, settings, addressOf, turns, clock } = options
  const failures = new TokenBuckets(maxNetworks)
  const checks = new TokenBuckets(maxNetworks)

  const failed = (thrown: unknown, request: ReceivedRequest): unknown => {
    const { maxFailures: burst, failureInterval: intervalMs } = settings()
    if (!isGuess(thrown) || burst === 0) return thrown
    const waitMs = failures.take(networkOf(addressOf(request) ?? ''), { burst, intervalMs }, clock.monotonic())
    return waitMs > 0 ? tooManyFailures(waitMs) : thrown
  }

  const admit: Admit = (authorization, request) => {
    // A request without a credential does not try to guess one, so it is not counted.
    if (authorization === undefined) return authenticate(authorization)
    /** The network for which a signature check was counted; undefined if none was. */
    let network: string | undefined
    const beforeSignature = () => {
      if (settings().maxFailures === 0) return
      const from = networkOf(addressOf(request) ?? '')
      const waitMs = checks.take(from, signatures, clock.monotonic())
      if (waitMs > 0) throw tooManyFailures(waitMs)
      network = from
    }
    const takeBack = () => network !== undefined && checks.giveBack(network, signatures, clock.monotonic())
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
  const inTurn = (identity: AuthIdentity) => turns?.take(identity.principal)?.then(() => identity) ?? identity
  return (authorization, request) => {
    const identity = admit(authorization, request)
    return identity instanceof Promise ? identity.then(inTurn) : inTurn(identity)
  }
}

/** Whether an error counts as a guess. An expired credential does not: its holder needs the 401 to get a new one. */
const isGuess = (thrown: unknown): boolean =>
  thrown instanceof HttpError && thrown.status === 401 && thrown.details.genuine !== true

const tooManyFailures = (retryAfterMs: number): HttpError => {
  const seconds = Math.ceil(retryAfterMs / 1000)
  const sentence = `Too many invalid credentials from this address (auth.maxFailures): try again in ${seconds} s.`
  return HttpError.of('RATE_LIMITED', sentence, { retryAfterMs, rule: throttleRule })
}

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

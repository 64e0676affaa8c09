import type { AuthConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { HttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { createAddressLimit } from './address-limit.ts'
import type { Authenticate, AuthIdentity } from './identity.ts'

/** Authenticates a request; throws a 429 after too many invalid credentials from one address. */
export type Admit = (
  authorization: string | undefined,
  request: ReceivedRequest,
) => AuthIdentity | Promise<AuthIdentity>

interface AdmitOptions {
  readonly authenticate: Authenticate
  settings(): FailureSettings
  addressOf(request: ReceivedRequest): string | undefined
  readonly clock: Clock
}

export type FailureSettings = Pick<AuthConfig, 'maxFailures' | 'failureInterval'>

/**
 * Rate of signature checks per address, for uncached tokens: a check costs a hundred times as much as comparing a hash.
 * Successful checks are refunded, so only failed and running ones count.
 */
const signatures = { burst: 50, intervalMs: 100 }

export const throttleRule = 'auth.maxFailures'

/**
 * Limits invalid credentials per address. Valid credentials are always accepted: users behind a proxy share an address,
 * and one of them must not lock out the others.
 */
export function createAdmit({ authenticate, settings, addressOf, clock }: AdmitOptions): Admit {
  const failures = createAddressLimit(clock)
  const checks = createAddressLimit(clock)

  const failed = (thrown: unknown, request: ReceivedRequest): unknown => {
    const { maxFailures: burst, failureInterval: intervalMs } = settings()
    if (!isGuess(thrown) || burst === 0) return thrown
    const rate = { burst, intervalMs }
    const address = addressOf(request) ?? ''
    const waitMs = failures.waitMs(address, rate)
    if (waitMs > 0) return tooMany(waitMs)
    failures.add(address, rate)
    return thrown
  }

  return (authorization, request) => {
    // A request without a credential is not a guess.
    if (authorization === undefined) return authenticate(authorization)
    /** Set once a signature check is counted. */
    let address: string | undefined
    const beforeSignature = () => {
      if (settings().maxFailures === 0) return
      const from = addressOf(request) ?? ''
      const waitMs = checks.waitMs(from, signatures)
      if (waitMs > 0) throw tooMany(waitMs)
      checks.add(from, signatures)
      address = from
    }
    const takeBack = () => {
      if (address !== undefined) checks.remove(address, signatures)
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
}

/** An expired credential is not a guess: its holder needs the 401 to get a new one. */
const isGuess = (thrown: unknown): boolean =>
  thrown instanceof HttpError && thrown.status === 401 && thrown.details.genuine !== true

const tooMany = (retryAfterMs: number): HttpError => {
  const seconds = Math.ceil(retryAfterMs / 1000)
  const sentence = `Too many invalid credentials from this address (auth.maxFailures): try again in ${seconds} s.`
  return HttpError.of('RATE_LIMITED', sentence, { retryAfterMs: Math.ceil(retryAfterMs), rule: throttleRule })
}

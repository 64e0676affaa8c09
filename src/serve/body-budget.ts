import { Refusal, rpc } from './refusal.ts'

/** Bounds what all request bodies in flight take in memory, per caller and in all. */
export interface BodyBudget {
  /** Bytes that are held now. */
  readonly held: number
  /** An account for one request of this caller. */
  open(caller: string): BodyAccount
}

export interface BodyAccount {
  /** Counts bytes before they are kept; throws a refusal where that would be too many. */
  add(bytes: number): void
  /** The request is over. May be called twice. */
  close(): void
}

export interface BudgetLimits {
  readonly maxInFlight: number
  readonly maxInFlightPerCaller: number
}

const retryAfterMs = 1_000

export function createBodyBudget({ maxInFlight, maxInFlightPerCaller }: BudgetLimits): BodyBudget {
  const ofCallers = new Map<string, number>()
  let held = 0

  return {
    get held() {
      return held
    },
    open(caller) {
      let own = 0
      return {
        add(bytes) {
          if (own + bytes > maxInFlightPerCaller) throw tooLarge(maxInFlightPerCaller)
          const ofCaller = (ofCallers.get(caller) ?? 0) + bytes
          if (ofCaller > maxInFlightPerCaller) {
            throw tooMany('Your requests in flight hold', maxInFlightPerCaller, 'server.maxInFlightPerCaller')
          }
          if (held + bytes > maxInFlight)
            throw tooMany('All requests in flight hold', maxInFlight, 'server.maxInFlight')
          own += bytes
          held += bytes
          ofCallers.set(caller, ofCaller)
        },
        close() {
          if (own === 0) return
          const left = (ofCallers.get(caller) ?? own) - own
          if (left > 0) ofCallers.set(caller, left)
          else ofCallers.delete(caller)
          held -= own
          own = 0
        },
      }
    },
  }
}

const tooMany = (who: string, limit: number, rule: string) =>
  Refusal.of('RATE_LIMITED', `${who} as many as the ${limit} bytes of ${rule}: wait for some to be answered.`, {
    retryAfterMs,
    rule,
  })

const tooLarge = (limit: number) =>
  new Refusal(
    413,
    rpc.request,
    `The body is larger than ${limit} bytes: send less, or raise server.maxInFlightPerCaller.`,
  )

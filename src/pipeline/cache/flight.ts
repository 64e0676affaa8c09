import type { Call, Handler, Peer } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import { endWith } from '../end-with.ts'

/** What those who have joined a call come by: its answer, its failure, or nothing, so that they must ask themselves. */
export type Outcome = { readonly result: Result } | { readonly error: unknown } | undefined

/** One call under way for all who want the same at the same time (F13). */
export interface Flight {
  /** The call that begins it. */
  readonly lead: Call
  /** Begins, and waits on behalf of that call. */
  start(next: Handler): Promise<Result>
  /** Waits on behalf of another one. */
  join(call: Call): Promise<Outcome>
}

export interface FlightOptions {
  /** It is answered; whether those who have joined may have the answer. */
  landed(result: Result): boolean
  /** Its caller was asked something: from now on this is nobody's call but its own. */
  asked(): void
  /** Nobody may join any more. */
  over(): void
}

/**
 * A call that others may join. It belongs to nobody: each who waits does so with a signal of its own, and it is
 * cancelled when the last one has left.
 */
export function createFlight(lead: Call, options: FlightOptions): Flight {
  const controller = new AbortController()
  const waiting = new Set<Call>()
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  let landed = false

  const abandon = (reason: unknown) => {
    landed = true
    options.over()
    controller.abort(reason)
  }

  const wait = async <T>(call: Call, work: () => Promise<T>): Promise<T> => {
    waiting.add(call)
    try {
      return await endWith(call.signal, work())
    } finally {
      waiting.delete(call)
      if (waiting.size === 0 && !landed) abandon(call.signal.reason)
    }
  }

  const fly = async (next: Handler): Promise<Result> => {
    try {
      const result = await next({ ...lead, peer, signal: controller.signal })
      resolve(options.landed(result) ? { result } : undefined)
      return result
    } catch (error) {
      resolve({ error })
      throw error
    } finally {
      landed = true
      options.over()
    }
  }

  const peer: Peer = {
    rounds: lead.peer.rounds,
    get logLevel() {
      return lead.peer.logLevel
    },
    notify(method, params) {
      // How far it has come is news for all of them; whatever else is said is said to the one that has begun.
      const hearing = method === 'notifications/progress' ? [...waiting] : waiting.has(lead) ? [lead] : []
      for (const call of hearing) call.peer.notify(method, params)
    },
    ask(method, params, signal) {
      options.asked()
      resolve(undefined)
      if (waiting.has(lead)) return lead.peer.ask(method, params, signal)
      // A question to one caller is never put to another.
      const gone = new ToolwayError('CANCELLED', 'The caller that this question is for has left.')
      if (!landed) abandon(gone)
      return Promise.reject(gone)
    },
  }

  return {
    lead,
    start: (next) => wait(lead, () => fly(next)),
    join: (call) => wait(call, () => outcome),
  }
}

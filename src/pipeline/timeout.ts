import type { Interceptor, Peer } from '../core/call.ts'
import { canBeAsked } from '../core/capabilities.ts'
import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { endWith } from './end-with.ts'

/**
 * Ends a call at its deadline (F10), also when whatever runs it does not listen to the signal. It stands before
 * whatever repeats attempts or lets them wait: all of that happens in the time of the one call.
 */
export const timeout = (clock: Clock): Interceptor => {
  return async (call, next) => {
    // Nothing is begun for somebody who has gone already.
    call.signal.throwIfAborted()
    const ms = call.timeoutMs ?? call.entry.traits.timeoutMs
    const tooLate = (late: boolean) => {
      const sentence = `${call.entry.server}.${call.entry.name} did not answer within ${ms} ms and was cancelled.`
      const paused = late ? ' Toolway itself was paused meanwhile.' : ''
      return new ToolwayError('TIMEOUT', sentence + paused, { server: call.entry.server, ...(late && { late }) })
    }
    using limit = deadline(clock, ms, tooLate, call.signal)
    const peer = canBeAsked(call.caller.capabilities) ? patient(call.peer, limit, clock) : call.peer
    return await endWith(limit.signal, next({ ...call, peer, signal: limit.signal }))
  }
}

/** As long as a person may take to answer. */
export const personMs = 600_000

const nobodyAnswers = () => new ToolwayError('TIMEOUT', 'Nobody has answered the question of this server in time.')

/** While somebody thinks about a server's question, the server's time does not run. */
const patient = (peer: Peer, limit: Deadline, clock: Clock): Peer => ({
  rounds: peer.rounds,
  get logLevel() {
    return peer.logLevel
  },
  notify: (method, params) => peer.notify(method, params),
  async ask(method, params, signal) {
    using _ = limit.pause()
    using patience = deadline(clock, personMs, nobodyAnswers, signal)
    return await peer.ask(method, params, patience.signal)
  },
})

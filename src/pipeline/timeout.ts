import type { Interceptor, Peer } from '../core/call.ts'
import { canBeAsked } from '../core/capabilities.ts'
import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline, waitFor } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'

/** Ends a call at its deadline (F10), also when whatever runs it does not listen to the signal. */
export const timeout = (clock: Clock): Interceptor => {
  return async (call, next) => {
    const ms = call.timeoutMs ?? call.entry.traits.timeoutMs
    const tooLate = () => {
      const sentence = `${call.entry.server}.${call.entry.name} did not answer within ${ms} ms and was cancelled.`
      return new ToolwayError('TIMEOUT', sentence, { server: call.entry.server })
    }
    using limit = deadline(clock, ms, tooLate, call.signal)
    const peer = canBeAsked(call.caller.capabilities) ? patient(call.peer, limit) : call.peer
    return await waitFor(next({ ...call, peer, signal: limit.signal }), limit.signal)
  }
}

/** While somebody thinks about a server's question, the server's time does not run. */
const patient = (peer: Peer, limit: Deadline): Peer => ({
  rounds: peer.rounds,
  get logLevel() {
    return peer.logLevel
  },
  notify: (method, params) => peer.notify(method, params),
  async ask(method, params, signal) {
    using _ = limit.pause()
    return await peer.ask(method, params, signal)
  },
})

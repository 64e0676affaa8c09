import { type Call, canBeAsked, type Interceptor, type Peer } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline, endWith } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { durationText } from '../lib/duration.ts'

/**
 * Ends a call at its deadline (F10), also when whatever runs it does not listen to the signal. It stands before
 * whatever repeats attempts or lets them wait: all of that happens in the time of the one call. Progress of the server
 * restarts the clock, up to a maximum (V4), unless the caller itself named a limit.
 */
export const timeout = (clock: Clock): Interceptor => {
  return async (call, next) => {
    // Nothing is begun for somebody who has gone already.
    call.signal.throwIfAborted()
    const { traits } = call.entry
    const ms = call.timeoutMs ?? traits.timeoutMs
    const maxMs = call.timeoutMs === undefined && traits.maxTimeout ? traits.maxTimeout.ms : 0
    const began = clock.monotonic()
    let hasProgressed = false
    const tooLate = (late: boolean) => {
      const sentence = hasProgressed
        ? afterProgress(call, ms, clock.monotonic() - began >= maxMs)
        : `${nameOf(call)} did not answer within ${durationText(ms)} (${keyOf(call)}) and was cancelled. ${remedy(call)}`
      const paused = late ? ' Toolway itself was paused meanwhile.' : ''
      return new ToolwayError('TIMEOUT', sentence + paused, { server: call.entry.server, ...(late && { late }) })
    }
    using limit = deadline(clock, ms, tooLate, call.signal)
    const peer = canBeAsked(call.caller.capabilities) ? patient(call.peer, limit, clock) : call.peer
    const progressed =
      maxMs > ms
        ? () => {
            hasProgressed = true
            limit.restart(maxMs)
          }
        : undefined
    return await endWith(limit.signal, next({ ...call, peer, signal: limit.signal, progressed }))
  }
}

const nameOf = ({ entry }: Call): string => `${entry.server}.${entry.name}`

const keyOf = ({ timeoutMs, timeoutKey = 'timeout_ms', entry: { traits } }: Call): string =>
  timeoutMs === undefined ? (traits.timeoutKey ?? 'timeoutMs in the definition of this tool') : timeoutKey

/** What to do about a call that needs longer. */
function remedy(call: Call): string {
  if (call.timeoutMs !== undefined) return `Call again with a longer ${keyOf(call)} if it needs more time.`
  if (call.entry.traits.timeoutKey === undefined) return 'Ask for less at once.'
  return `If it needs more time, the operator can raise ${keyOf(call)}.`
}

function afterProgress(call: Call, ms: number, atMaximum: boolean): string {
  const { maxTimeout } = call.entry.traits
  if (atMaximum && maxTimeout) {
    const limit = `${durationText(maxTimeout.ms)} (${maxTimeout.key})`
    return `${nameOf(call)} reported progress but did not answer within ${limit} and was cancelled. If it needs more time, the operator can raise ${maxTimeout.key}.`
  }
  return `${nameOf(call)} reported progress, then nothing for ${durationText(ms)} (${keyOf(call)}), and was cancelled. ${remedy(call)}`
}

/** As long as a person may take to answer. */
export const personMs = 600_000

const nobodyAnswers = () =>
  new ToolwayError(
    'TIMEOUT',
    `Nobody has answered the question of this server within ${durationText(personMs)}, which is a fixed limit.`,
  )

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

import { type Call, canBeAsked, type Interceptor, type Peer, wrapPeer } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { durationText } from '../lib/duration.ts'
import { waitStep } from './observe.ts'

/**
 * Aborts a call at its deadline (F10). This interceptor comes before retries and queues, so that they share the call's
 * time; each of them ends with the signal, even if the server does not. Progress notifications from the server restart the timeout, up to a
 * maximum (V4), unless the caller set a limit.
 */
export const timeout = (clock: Clock): Interceptor => {
  return (call, next) => {
    // Do not start the call if its caller has already stopped waiting.
    if (call.signal.aborted) return Promise.reject(call.signal.reason)
    const { traits } = call.entry
    const ms = timeOf(call)
    const maxMs = call.timeoutMs === undefined && traits.maxTimeout ? traits.maxTimeout.ms : 0
    const began = clock.monotonic()
    let hasProgressed = false
    const tooLate = (late: boolean) => {
      const sentence = hasProgressed
        ? afterProgress(call, ms, clock.monotonic() - began >= maxMs)
        : `${nameOf(call)} did not answer within ${durationText(maxTimeoutOf(call) ? ms : (call.wholeTimeoutMs ?? ms))} (${keyOf(call)}) and was cancelled. ${remedy(call)}`
      const paused = late ? ' Toolway was suspended during the call.' : ''
      return new ToolwayError('TIMEOUT', sentence + paused, { server: call.entry.server, ...(late && { late }) })
    }
    const limit = deadline(clock, ms, tooLate, call.signal)
    const peer = canBeAsked(call.caller.capabilities) ? patient(call, limit, clock) : call.peer
    const progressed =
      maxMs > ms
        ? () => {
            hasProgressed = true
            limit.restart(maxMs)
          }
        : undefined
    const answer = next({ ...call, peer, signal: limit.signal, progressed })
    const over = () => limit[Symbol.dispose]()
    answer.then(over, over)
    return answer
  }
}

/** How long an attempt may take without progress: the caller's limit, up to the operator's, or the entry's. */
export const timeOf = (call: Call): number => maxTimeoutOf(call)?.ms ?? call.timeoutMs ?? call.entry.traits.timeoutMs

/** The operator's maximum, if the caller set a longer limit. */
const maxTimeoutOf = ({ timeoutMs = 0, entry: { traits } }: Call) =>
  traits.maxTimeout && timeoutMs > traits.maxTimeout.ms ? traits.maxTimeout : undefined

const nameOf = ({ entry }: Call): string => `${entry.server}.${entry.name}`

function keyOf(call: Call): string {
  const { timeoutMs, timeoutKey = 'timeout_ms', entry } = call
  if (timeoutMs === undefined) return entry.traits.timeoutKey ?? "timeoutMs in this tool's definition"
  return maxTimeoutOf(call)?.key ?? timeoutKey
}

function remedy(call: Call): string {
  if (maxTimeoutOf(call)) return `If it needs more time, the operator can raise ${keyOf(call)}.`
  if (call.timeoutMs !== undefined) return `Retry with a longer ${keyOf(call)} if it needs more time.`
  if (call.entry.traits.timeoutKey === undefined) return 'Request less per call.'
  return `If it needs more time, the operator can raise ${keyOf(call)}.`
}

function afterProgress(call: Call, ms: number, atMaximum: boolean): string {
  const { maxTimeout } = call.entry.traits
  if (atMaximum && maxTimeout) {
    const limit = `${durationText(maxTimeout.ms)} (${maxTimeout.key})`
    return `${nameOf(call)} reported progress but did not answer within ${limit} and was cancelled. If it needs more time, the operator can raise ${maxTimeout.key}.`
  }
  return `${nameOf(call)} reported progress, then sent nothing for ${durationText(ms)} (${keyOf(call)}), and was cancelled. ${remedy(call)}`
}

const personMs = 600_000

const unanswered = () =>
  new ToolwayError(
    'TIMEOUT',
    `The server's question was not answered within ${durationText(personMs)} (a fixed limit).`,
  )

/** Pauses the call's deadline while a person answers the server's question. */
const patient = ({ peer, trail }: Call, limit: Deadline, clock: Clock): Peer => {
  const pausedHere = async <T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> => {
    using _ = limit.pause()
    using patience = deadline(clock, personMs, unanswered, signal)
    return await waitStep(trail, 'ask', work(patience.signal))
  }
  return wrapPeer(peer, {
    ask: (method, params, signal, from) => pausedHere((until) => peer.ask(method, params, until, from), signal),
    // If a meta-tool made the call, its own call waits too.
    paused: (work, signal) => pausedHere((until) => peer.paused?.(work, until) ?? work(until), signal),
  })
}

import { randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { createSeal } from '../../lib/seal.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { ResumableCall } from './resumable-call.ts'

/** Only a request with the same values can resume the call. */
interface CallOwner {
  readonly principal: string
  readonly method: string
  readonly name: string
}

interface PendingCall {
  readonly id: string
  readonly call: ResumableCall
  readonly owner: CallOwner
  /** The number of suspensions so far; each has its own state. */
  round: number
  timer: Disposable | undefined
}

/** Time for a person to answer. */
const maxIdleMs = 600_000

/** Distinguishes the gateway's states from those of servers. */
const prefix = 'toolway-call.'

/** In all and per principal: each suspended call keeps a request open at a server. */
const defaults = { all: 2_000, each: 500 }

/** The replica that holds the call; undefined without replicas, or if the state is not the gateway's. */
export function replicaOfState(state: string): string | undefined {
  if (!state.startsWith(prefix)) return undefined
  const end = state.indexOf('.', prefix.length)
  return end === -1 ? undefined : state.slice(prefix.length, end)
}

export function createPendingCalls(clock: Clock, limits = defaults, replica?: string) {
  const ours = replica === undefined ? prefix : `${prefix}${replica}.`
  // A key per process is sufficient: calls do not outlive the process.
  const seal = createSeal(randomBytes(32).toString('base64url'))
  const places = new Map<string, PendingCall>()
  const placeOf = new Map<ResumableCall, PendingCall>()
  const counts = new Map<string, number>()
  let closed = false

  /** Releases the call's slot. */
  const forget = (call: ResumableCall) => {
    const place = placeOf.get(call)
    if (place === undefined) return
    const { principal } = place.owner
    place.timer?.[Symbol.dispose]()
    placeOf.delete(call)
    places.delete(place.id)
    const left = (counts.get(principal) ?? 1) - 1
    if (left === 0) counts.delete(principal)
    else counts.set(principal, left)
  }

  const cancel = (call: ResumableCall) => {
    forget(call)
    call.cancel()
  }

  return {
    /** Reserves a slot for a call that may have to wait; throws OVERLOADED if none is free. */
    admit(call: ResumableCall, owner: CallOwner): void {
      if (closed) throw new ToolwayError('OVERLOADED', 'This gateway is shutting down and can no longer request input.')
      if (placeOf.has(call)) return
      const own = counts.get(owner.principal) ?? 0
      if (placeOf.size >= limits.all || own >= limits.each) {
        throw new ToolwayError(
          'OVERLOADED',
          'Too many calls are waiting for input from their callers: try again later.',
        )
      }
      counts.set(owner.principal, own + 1)
      const place: PendingCall = { id: randomBytes(16).toString('base64url'), call, owner, round: 0, timer: undefined }
      places.set(place.id, place)
      placeOf.set(call, place)
    },
    /** Suspends the call for a limited time. Returns the state that its caller must send back, valid once. */
    suspend(call: ResumableCall): string {
      const place = placeOf.get(call)
      if (place === undefined) throw new Error('a call must be admitted before it can wait')
      place.round++
      place.timer = clock.after(maxIdleMs, () => cancel(call))
      return ours + seal.close(`${place.id}.${place.round}`, bindingOf(place.owner))
    },
    /** Whether the gateway issued this state; any other state belongs to a server. */
    recognises: (state: unknown): state is string => typeof state === 'string' && state.startsWith(prefix),
    /** Throws if this owner has no suspended call with this state. */
    resume(state: string, owner: CallOwner): ResumableCall {
      const sealed = state.startsWith(ours) ? state.slice(ours.length) : ''
      const [id = '', round] = seal.open(sealed, bindingOf(owner))?.split('.') ?? []
      const place = places.get(id)
      if (place?.timer === undefined || String(place.round) !== round) throw invalidState()
      place.timer[Symbol.dispose]()
      place.timer = undefined
      return place.call
    },
    forget,
    /** Cancels all suspended calls and admits no more. */
    close(): void {
      closed = true
      for (const { timer, call } of [...placeOf.values()]) if (timer !== undefined) cancel(call)
    },
  }
}

/** The same error for every invalid state, so that guessing reveals nothing. */
export const invalidState = () =>
  new ProtocolError(rpcCodes.params, 'Invalid or expired requestState: make the call again without it.', {
    reason: 'invalid_request_state',
  })

const bindingOf = ({ principal, method, name }: CallOwner) => JSON.stringify([principal, method, name])

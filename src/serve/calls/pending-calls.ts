import { randomBytes } from 'node:crypto'
import { type Caller, ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ownerOf } from '../../core/cluster.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budgets.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { createSeal } from '../../lib/seal.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { ResumableCall } from './resumable-call.ts'

/** The properties that a request must share with a suspended call in order to resume it. */
interface CallOwner extends Pick<Caller, 'principal' | 'agent'> {
  readonly method: string
  readonly name: string
}

interface PendingCall {
  readonly id: string
  readonly call: ResumableCall
  readonly owner: CallOwner
  /** The size of the call's params and of its questions. */
  bytes: number
  /** Number of times that the call has been suspended. Each suspension has its own state. */
  round: number
  timer: Disposable | undefined
}

/** How long a suspended call waits for its caller. This gives a person enough time to answer. */
const maxIdleMs = fixedLimits.suspendedMs.value

/** The prefix of states that the gateway issued. States without it belong to servers. */
const prefix = 'toolway-call.'

/**
 * The replica that holds a suspended call, or the process that issued a server's state. Empty with a single replica, and
 * for states that any replica can continue.
 */
export const replicaOfState = (state: string): string =>
  ownerOf(state.startsWith(prefix) ? state.slice(prefix.length) : state)

type QuestionBudgets = Pick<Budgets, 'questions' | 'question_bytes'>

/** The suspended calls. Each one keeps a request to a server open, so they and their bytes count against budgets. */
export function createPendingCalls(clock: Clock, budgets: QuestionBudgets, replica?: string) {
  const { questions, question_bytes } = budgets
  const ours = replica === undefined ? prefix : `${prefix}${replica}.`
  // A new key for each process is sufficient, because calls do not outlive the process.
  const seal = createSeal(randomBytes(32).toString('base64url'))
  const byId = new Map<string, PendingCall>()
  const byCall = new Map<ResumableCall, PendingCall>()
  let closed = false

  const forget = (call: ResumableCall) => {
    const pending = byCall.get(call)
    if (pending === undefined) return
    pending.timer?.[Symbol.dispose]()
    byCall.delete(call)
    byId.delete(pending.id)
    questions.give(pending.owner.principal)
    question_bytes.give(pending.owner.principal, pending.bytes)
  }

  const cancel = (call: ResumableCall) => {
    forget(call)
    call.cancel()
  }

  return {
    /**
     * Reserves room for a call that may have to be suspended, and for a question; throws OVERLOADED if there is none.
     * `callBytes` and `questionBytes` are the sizes of the two.
     */
    admit(call: ResumableCall, owner: CallOwner, callBytes: number, questionBytes: number): void {
      if (closed) throw new ToolwayError('OVERLOADED', 'This gateway is shutting down and can no longer request input.')
      const known = byCall.get(call)
      const bytes = questionBytes + (known ? 0 : callBytes)
      if (!known) questions.check(owner.principal)
      question_bytes.claim(owner.principal, bytes)
      if (known) {
        known.bytes += bytes
        return
      }
      questions.claim(owner.principal)
      const pending: PendingCall = {
        id: randomBytes(16).toString('base64url'),
        call,
        owner,
        bytes,
        round: 0,
        timer: undefined,
      }
      byId.set(pending.id, pending)
      byCall.set(call, pending)
    },
    /** Suspends the call for a limited time. Returns the state that the caller must send back; it is valid once. */
    suspend(call: ResumableCall): string {
      const pending = byCall.get(call)
      if (pending === undefined) throw new Error('a call must be admitted before it can be suspended')
      pending.round++
      pending.timer = clock.after(maxIdleMs, () => cancel(call))
      return ours + seal.close(`${pending.id}.${pending.round}`, bindingOf(pending.owner))
    },
    /** Whether the gateway issued this state; any other state belongs to a server. */
    recognises: (state: unknown): state is string => typeof state === 'string' && state.startsWith(prefix),
    /** Returns the suspended call. Throws if this owner has no suspended call with this state. */
    resume(state: string, owner: CallOwner): ResumableCall {
      const sealed = state.startsWith(ours) ? state.slice(ours.length) : ''
      const [id = '', round] = seal.open(sealed, bindingOf(owner))?.split('.') ?? []
      const pending = byId.get(id)
      if (pending?.timer === undefined || String(pending.round) !== round) throw invalidState()
      pending.timer[Symbol.dispose]()
      pending.timer = undefined
      return pending.call
    },
    forget,
    /** Cancels all suspended calls. No more calls are admitted afterwards. */
    close(): void {
      closed = true
      for (const { timer, call } of [...byCall.values()]) if (timer !== undefined) cancel(call)
    },
  }
}

/** The error for every kind of invalid state. It is always the same, so that guessing reveals nothing. */
export const invalidState = () =>
  new ProtocolError(rpcCodes.params, 'Invalid or expired requestState: make the call again without it.', {
    reason: 'invalid_request_state',
  })

const bindingOf = (owner: CallOwner) => JSON.stringify([ownerKey(owner), owner.method, owner.name])

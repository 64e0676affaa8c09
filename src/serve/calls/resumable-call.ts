import { randomBytes } from 'node:crypto'
import { type Caller, type Capabilities, type LogLevel, ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ownerOf } from '../../core/cluster.ts'
import { ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { Json } from '../../json/json.ts'
import { createSeal } from '../../lib/seal.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { type Id, notificationBytes } from '../../wire/message.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { Params } from '../inbound-message.ts'
import { callEnded } from '../session/session.ts'
import {
  meetsLogLevel,
  missingCapabilities,
  missingCapabilityError,
  requiredCapabilities,
} from './client-capabilities.ts'
import { type CallPeer, CallProgress } from './operations.ts'

/** One of the requests that make up a call. A call that requires input continues in its caller's next request. */
export interface RequestTurn {
  readonly id: Id
  readonly revision: string
  readonly capabilities: Capabilities
  readonly logLevel: LogLevel | undefined
  readonly progressToken: unknown
  send(message: Buffer): boolean
}

export interface InputRequest {
  readonly method: string
  readonly params: Json
}

export type TurnOutcome =
  | { readonly kind: 'done'; readonly result: Pieces }
  | { readonly kind: 'failed'; readonly thrown: unknown }
  | { readonly kind: 'asked'; readonly questions: ReadonlyMap<string, InputRequest> }
  | { readonly kind: 'cancelled' }

interface PendingInput extends InputRequest {
  answer(value: Json): void
  drop(error: Error): void
}

const maxInputRequests = 64

/** A notification that legacy servers send but that does not exist in the stateless protocol. */
const unknownHere = 'notifications/elicitation/complete'

/** Limits for notifications that are kept while the call has no open request. */
const maxHeldNotifications = 64
const maxHeldBytes = 64 * 1024

/** A stateless call. It stays open while its caller collects the required input, and the next request continues it. */
export class ResumableCall implements CallPeer {
  readonly rounds = true
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  readonly #questions = new Map<string, PendingInput>()
  readonly #admit: (bytes: number) => void
  #held: { readonly method: string; readonly params: Json }[] = []
  #current: RequestTurn
  #settle: ((turn: TurnOutcome) => void) | undefined
  #end: TurnOutcome | undefined
  #asked = 0
  #progress: CallProgress | undefined
  missingCapability: Error | undefined

  /** `admit` runs before each input request. It throws if the call may not be suspended. */
  constructor(current: RequestTurn, admit: (bytes: number) => void) {
    this.#current = current
    this.#admit = admit
  }

  get logLevel(): LogLevel | undefined {
    return this.#current.logLevel
  }

  get request() {
    return { id: this.#current.id, revision: this.#current.revision }
  }

  run(work: Promise<Pieces>): void {
    work.then(
      (result) => this.#finish({ kind: 'done', result }),
      (thrown: unknown) => this.#finish({ kind: 'failed', thrown }),
    )
  }

  /** Continues the call in a new request and waits for the outcome. `answers` are the caller's input responses. */
  turn(current: RequestTurn, answers: Params = {}): Promise<TurnOutcome> {
    this.#current = current
    for (const [key, question] of this.#questions) {
      if (isInputResponse(answers[key])) question.answer(Json.of(answers[key]))
    }
    const held = this.#held
    this.#held = []
    for (const { method, params } of held) this.#deliver(method, params)
    if (this.#end !== undefined) {
      this.#dropQuestions()
      return Promise.resolve(this.#end)
    }
    if (this.#questions.size > 0) this.#tellSoon()
    return new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  cancel(): void {
    this.#finish({ kind: 'cancelled' })
    this.#dropQuestions()
    this.#controller.abort(new ToolwayError('CANCELLED', 'The caller cancelled this call.'))
  }

  notify(method: string, params: Json): void {
    if (this.#end !== undefined || method === unknownHere) return
    if (this.#settle !== undefined) {
      this.#deliver(method, params)
      return
    }
    if (params.bytes.length > maxHeldBytes / maxHeldNotifications) return
    if (this.#held.length === maxHeldNotifications) this.#held.shift()
    this.#held.push({ method, params })
  }

  async ask(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    if (this.#end !== undefined || signal.aborted) throw callEnded(method)
    this.#checkCapabilities(method, params)
    if (this.#questions.size >= maxInputRequests) {
      const sentence = `The caller already has ${maxInputRequests} unanswered input requests: try again when it has answered some.`
      throw new ToolwayError('OVERLOADED', sentence)
    }
    this.#admit(params.bytes.length)
    const { promise, resolve, reject } = Promise.withResolvers<Json>()
    const key = `q${++this.#asked}`
    const withdraw = () => question.drop(callEnded(method))
    const over = () => {
      this.#questions.delete(key)
      signal.removeEventListener('abort', withdraw)
    }
    const question: PendingInput = {
      method,
      params,
      answer(value) {
        over()
        resolve(value)
      },
      drop(error) {
        over()
        reject(error)
      },
    }
    this.#questions.set(key, question)
    signal.addEventListener('abort', withdraw)
    this.#tellSoon()
    return await promise
  }

  #checkCapabilities(method: string, params: Json): void {
    const required = requiredCapabilities(method, params.value)
    if (required === undefined) {
      throw new UnsupportedRequest(`${method} cannot be sent to the caller's client during a call.`)
    }
    const missing = missingCapabilities(this.#current.capabilities, required)
    if (missing === undefined) return
    this.missingCapability ??= missingCapabilityError(missing)
    throw new UnsupportedRequest(missingCapabilityError(missing).message)
  }

  #deliver(method: string, params: Json): void {
    const { progressToken, logLevel } = this.#current
    if (method === 'notifications/message' && !meetsLogLevel(logLevel, params)) return
    if (method !== 'notifications/progress') {
      this.#current.send(notificationBytes(method, params))
      return
    }
    if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return
    this.#progress ??= new CallProgress()
    this.#current.send(notificationBytes(method, this.#progress.next(progressToken, params)))
  }

  /** Batches input requests raised in the same tick into one response. */
  #tellSoon(): void {
    setImmediate(() => {
      if (this.#settle === undefined || this.#questions.size === 0) return
      const settle = this.#settle
      this.#settle = undefined
      settle({ kind: 'asked', questions: new Map(this.#questions) })
    })
  }

  #finish(end: TurnOutcome): void {
    if (this.#end !== undefined) return
    this.#end = end
    // The caller is collecting input and will send another request, so keep the result for that request.
    if (this.#settle === undefined && this.#asked > 0 && end.kind === 'done') return
    this.#settle?.(end)
    this.#settle = undefined
    this.#dropQuestions()
  }

  #dropQuestions(): void {
    for (const question of this.#questions.values()) question.drop(callEnded(question.method))
  }
}

/** Whether a value is an input response: the bare result. A client that wraps it in a message is asked again. */
const isInputResponse = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('method' in value && 'result' in value)

/** The properties that a request must share with a suspended call in order to resume it. */
interface CallOwner extends Pick<Caller, 'principal' | 'agent'> {
  readonly method: string
  readonly name: string
}

interface PendingCall {
  readonly id: string
  readonly call: ResumableCall
  readonly owner: CallOwner
  bytes: number
  /** Number of times that the call has been suspended. Each suspension has its own state. */
  round: number
  timer: Disposable | undefined
}

/** How long a suspended call waits for its caller. This gives a person enough time to answer. */
const maxSuspendedMs = fixedLimits.suspendedMs.value

/** The prefix of states that the gateway issued. States without it belong to servers. */
const ownStatePrefix = 'toolway-call.'

/**
 * The replica that holds a suspended call, or the process that issued a server's state. Empty with a single replica, and
 * for states that any replica can continue.
 */
export const replicaOfState = (state: string): string =>
  ownerOf(state.startsWith(ownStatePrefix) ? state.slice(ownStatePrefix.length) : state)

type QuestionBudgets = Pick<Budgets, 'questions' | 'question_bytes'>

/** The suspended calls. Each one keeps a request to a server open, so they and their bytes count against budgets. */
export class PendingCalls {
  readonly #clock: Clock
  readonly #budgets: QuestionBudgets
  readonly #ours: string
  // A new key for each process is sufficient, because calls do not outlive the process.
  readonly #seal = createSeal(randomBytes(32).toString('base64url'))
  readonly #byId = new Map<string, PendingCall>()
  readonly #byCall = new Map<ResumableCall, PendingCall>()
  #isClosed = false

  constructor(clock: Clock, budgets: QuestionBudgets, replica?: string) {
    this.#clock = clock
    this.#budgets = budgets
    this.#ours = replica === undefined ? ownStatePrefix : `${ownStatePrefix}${replica}.`
  }

  /**
   * Reserves room for a call that may have to be suspended, and for a question; throws OVERLOADED if there is none.
   * `callBytes` and `questionBytes` are the sizes of the two.
   */
  admit(call: ResumableCall, owner: CallOwner, callBytes: number, questionBytes: number): void {
    if (this.#isClosed)
      throw new ToolwayError('OVERLOADED', 'This gateway is shutting down and can no longer request input.')
    const { questions, question_bytes } = this.#budgets
    const { principal } = owner
    const known = this.#byCall.get(call)
    const bytes = questionBytes + (known ? 0 : callBytes)
    if (!known) questions.check(principal)
    question_bytes.claim(principal, bytes)
    if (known) {
      known.bytes += bytes
      return
    }
    questions.claim(principal)
    const id = randomBytes(16).toString('base64url')
    const pending: PendingCall = { id, call, owner, bytes, round: 0, timer: undefined }
    this.#byId.set(id, pending)
    this.#byCall.set(call, pending)
  }

  /** Suspends the call for a limited time. Returns the state that the caller must send back; it is valid once. */
  suspend(call: ResumableCall): string {
    const pending = this.#byCall.get(call)
    if (pending === undefined) throw new Error('a call must be admitted before it can be suspended')
    pending.round++
    pending.timer = this.#clock.after(maxSuspendedMs, () => this.#cancel(call))
    return this.#ours + this.#seal.close(`${pending.id}.${pending.round}`, stateBinding(pending.owner))
  }

  /** Returns the suspended call. Throws if this owner has no suspended call with this state. */
  resume(state: string, owner: CallOwner): ResumableCall {
    const sealed = state.startsWith(this.#ours) ? state.slice(this.#ours.length) : ''
    const [id = '', round] = this.#seal.open(sealed, stateBinding(owner))?.split('.') ?? []
    const pending = this.#byId.get(id)
    if (pending?.timer === undefined || String(pending.round) !== round) throw invalidState()
    pending.timer[Symbol.dispose]()
    pending.timer = undefined
    return pending.call
  }

  forget(call: ResumableCall): void {
    const pending = this.#byCall.get(call)
    if (pending === undefined) return
    pending.timer?.[Symbol.dispose]()
    this.#byCall.delete(call)
    this.#byId.delete(pending.id)
    this.#budgets.questions.give(pending.owner.principal)
    this.#budgets.question_bytes.give(pending.owner.principal, pending.bytes)
  }

  /** Cancels all suspended calls. No more calls are admitted afterwards. */
  close(): void {
    this.#isClosed = true
    for (const { timer, call } of [...this.#byCall.values()]) if (timer !== undefined) this.#cancel(call)
  }

  #cancel(call: ResumableCall): void {
    this.forget(call)
    call.cancel()
  }
}

/** Whether the gateway issued this state; any other state belongs to a server. */
export const isOwnState = (state: string): boolean => state.startsWith(ownStatePrefix)

/** The error for every kind of invalid state. It is always the same, so that guessing reveals nothing. */
export const invalidState = () =>
  new ProtocolError(rpcCodes.params, 'Invalid or expired requestState: make the call again without it.', {
    reason: 'invalid_request_state',
  })

const stateBinding = (owner: CallOwner) => JSON.stringify([ownerKey(owner), owner.method, owner.name])

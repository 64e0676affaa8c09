import type { Capabilities, LogLevel } from '../../core/call.ts'
import { ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { type Id, notificationBytes } from '../../wire/message.ts'
import type { Params } from '../inbound-message.ts'
import {
  meetsLogLevel,
  missingCapabilities,
  missingCapabilityError,
  requiredCapabilities,
} from './client-capabilities.ts'
import { type CallPeer, CallProgress } from './operations.ts'
import { callEnded } from './pending-client-requests.ts'

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

/** Maximum number of unanswered input requests per call. */
const maxQuestions = 64

/** A notification that legacy servers send but that does not exist in the stateless protocol. */
const unknownHere = 'notifications/elicitation/complete'

/** Limits for notifications that are kept while the call has no open request. */
const maxHeld = 64
const maxHeldBytes = 64 * 1024

/** A stateless call. It stays open while its caller collects the required input, and the next request continues it. */
export class ResumableCall implements CallPeer {
  readonly rounds = true
  readonly #controller = new AbortController()
  readonly #questions = new Map<string, PendingInput>()
  readonly #admit: (bytes: number) => void
  readonly #progress = new CallProgress()
  #held: { readonly method: string; readonly params: Json }[] = []
  #current: RequestTurn
  #settle: ((turn: TurnOutcome) => void) | undefined
  #end: TurnOutcome | undefined
  #asked = 0
  #missing: Error | undefined

  /** `admit` runs before each input request. It throws if the call may not be suspended. */
  constructor(current: RequestTurn, admit: (bytes: number) => void) {
    this.#current = current
    this.#admit = admit
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get logLevel(): LogLevel | undefined {
    return this.#current.logLevel
  }

  get missingCapability(): Error | undefined {
    return this.#missing
  }

  get request() {
    return { id: this.#current.id, revision: this.#current.revision }
  }

  run(work: (call: ResumableCall) => Promise<Pieces>): void {
    work(this).then(
      (result) => this.#finish({ kind: 'done', result }),
      (thrown: unknown) => this.#finish({ kind: 'failed', thrown }),
    )
  }

  /** Continues the call in a new request and waits for the outcome. `answers` are the caller's input responses. */
  turn(current: RequestTurn, answers: Params = {}): Promise<TurnOutcome> {
    this.#current = current
    for (const [key, question] of this.#questions) {
      if (isAnswer(answers[key])) question.answer(Json.of(answers[key]))
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
    if (params.bytes.length > maxHeldBytes / maxHeld) return
    if (this.#held.length === maxHeld) this.#held.shift()
    this.#held.push({ method, params })
  }

  async ask(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    if (this.#end !== undefined || signal.aborted) throw callEnded(method)
    this.#checkCapabilities(method, params)
    if (this.#questions.size >= maxQuestions) {
      const sentence = `The caller already has ${maxQuestions} unanswered input requests: try again when it has answered some.`
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
    this.#missing ??= missingCapabilityError(missing)
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
const isAnswer = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('method' in value && 'result' in value)

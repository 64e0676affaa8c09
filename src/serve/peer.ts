import type { Peer } from '../core/call.ts'
import type { LogLevel } from '../core/capabilities.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import { type Id, notificationBytes } from '../wire/message.ts'
import { type InboundRequest, isObject } from './inbound.ts'
import { progressUnder } from './progress.ts'
import type { Session } from './session.ts'
import { isHeard, undeclared } from './session-peer.ts'

/** Where one request's messages go: the answer to its own POST, or the one line of a stdio client. */
export interface Outlet {
  /** Who to tell when the client goes away before its answer. */
  owner: { cancel(): void } | undefined
  /** Sends a message ahead of the answer; false if the client cannot be reached that way. */
  send(message: Buffer): boolean
  /** There will be no answer. */
  abandon(): void
}

/** One request in flight: how it is cancelled, and the way back to its caller until it is answered. */
export class RequestPeer implements Peer {
  readonly #id: Id
  readonly #session: Session
  readonly #outlet: Outlet
  readonly #progressToken: unknown
  readonly #controller = new AbortController()
  #over: AbortController | undefined
  #answered = false

  constructor(session: Session, request: InboundRequest, outlet: Outlet) {
    const { _meta } = request.params
    this.#id = request.id
    this.#session = session
    this.#outlet = outlet
    this.#progressToken = isObject(_meta) ? _meta.progressToken : undefined
    outlet.owner = this
    session.requests.set(request.id, this)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  readonly rounds = false

  get logLevel(): LogLevel | undefined {
    return this.#session.logLevel
  }

  get request() {
    return { id: this.#id, revision: this.#session.revision }
  }

  cancel(): void {
    if (this.#answered) return
    this.#controller.abort(new ToolwayError('CANCELLED', 'The caller cancelled this call.'))
    this.answered()
    this.#outlet.abandon()
  }

  /** Nothing may follow the answer, and nothing asked on the way is of interest after it. */
  answered(): void {
    if (this.#answered) return
    this.#answered = true
    this.#session.requests.delete(this.#id)
    this.#over?.abort()
  }

  notify(method: string, params: Json): void {
    if (this.#answered || !isHeard(this.#session, method, params)) return
    if (method !== 'notifications/progress') {
      this.#outlet.send(notificationBytes(method, params))
      return
    }
    const token = this.#progressToken
    if (token === undefined) return
    this.#outlet.send(notificationBytes(method, progressUnder(token, params)))
  }

  ask(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const refused = undeclared(this.#session, method)
    if (refused !== undefined) return Promise.reject(refused)
    this.#over ??= new AbortController()
    if (this.#answered) this.#over.abort()
    const waiting = AbortSignal.any([signal, this.#over.signal])
    return this.#session.asks.ask((message) => this.#outlet.send(message), method, params, waiting)
  }
}

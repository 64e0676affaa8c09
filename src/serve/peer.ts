import type { Peer } from '../core/call.ts'
import type { LogLevel } from '../core/capabilities.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { notificationBytes } from '../wire/encode.ts'
import type { Id } from '../wire/message.ts'
import { type InboundRequest, isObject, type Params } from './inbound.ts'
import { isWanted } from './log-level.ts'
import type { Session } from './session.ts'

/** Where one request's messages go: the answer to its own POST, or the one line of a stdio client. */
export interface Outlet {
  /** Who to tell when the client goes away before its answer. */
  owner: { cancel(): void } | undefined
  /** Sends a message ahead of the answer; false if the client cannot be reached that way. */
  send(message: Buffer): boolean
  /** There will be no answer. */
  abandon(): void
}

/** What a client must have declared before it may be asked. */
const needed: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
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
    // Tokens are renewed on every hop: whatever the last one was called, on this stream it has the caller's name.
    const progress = params.value as Params
    const renamed = progress.progressToken === token ? params : Json.of({ ...progress, progressToken: token })
    this.#outlet.send(notificationBytes(method, renamed))
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

/** The way to a session's client outside any request; a question waits no longer than the session lasts. */
export const sessionPeer = (session: () => Session, tell: (message: Buffer) => boolean, ended: AbortSignal): Peer => ({
  rounds: false,
  get logLevel() {
    return session().logLevel
  },
  notify(method, params) {
    if (isHeard(session(), method, params)) tell(notificationBytes(method, params))
  },
  ask(method, params, signal) {
    const refused = undeclared(session(), method)
    if (refused !== undefined) return Promise.reject(refused)
    return session().asks.ask(tell, method, params, AbortSignal.any([signal, ended]))
  },
})

/** A client that has said nothing gets whatever servers send: nothing is lost on the way. */
const isHeard = ({ logLevel }: Session, method: string, params: Json): boolean =>
  method !== 'notifications/message' || logLevel === undefined || isWanted(logLevel, params)

/** Why a client cannot be asked for this, if it cannot. */
function undeclared(session: Session, method: string): ToolwayError | undefined {
  const capability = needed[method]
  if (capability === undefined || session.capabilities[capability] !== undefined) return undefined
  const sentence = `The caller's client cannot be asked for ${method}: it did not declare the capability "${capability}".`
  return new ToolwayError('INVALID_ARGUMENTS', sentence)
}

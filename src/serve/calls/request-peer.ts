import type { LogLevel, Peer } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { type Id, notificationBytes } from '../../wire/message.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import { type InboundRequest, isObject, type Params } from '../inbound-message.ts'
import { type Session, undeclaredRequest, wantsNotification } from '../session/session.ts'

/** Sends the messages of one request: the response to its POST, or the stdio stream. */
export interface ResponseChannel {
  /** Cancelled if the client disconnects before the response. */
  owner: { cancel(): void } | undefined
  /** Sends a message before the response; returns false if that is not possible. */
  send(message: Buffer): boolean
  abandon(): void
}

/** One request in flight: its cancellation and, until it is answered, the connection to its caller. */
export class RequestPeer implements Peer {
  readonly #id: Id
  readonly #session: Session
  readonly #outlet: ResponseChannel
  readonly #progressToken: unknown
  readonly #controller = new AbortController()
  #over: AbortController | undefined
  #answered = false

  constructor(session: Session, request: InboundRequest, outlet: ResponseChannel) {
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

  /** After this, notifications are dropped and pending client requests are cancelled. */
  answered(): void {
    if (this.#answered) return
    this.#answered = true
    this.#session.requests.delete(this.#id)
    this.#over?.abort()
  }

  notify(method: string, params: Json): void {
    if (this.#answered || !wantsNotification(this.#session, method, params)) return
    if (method !== 'notifications/progress') {
      this.#outlet.send(notificationBytes(method, params))
      return
    }
    const token = this.#progressToken
    if (token === undefined) return
    this.#outlet.send(notificationBytes(method, withProgressToken(token, params)))
  }

  ask(method: string, params: Json, signal: AbortSignal): Promise<Json> {
    const refused = undeclaredRequest(this.#session, method)
    if (refused !== undefined) return Promise.reject(refused)
    this.#over ??= new AbortController()
    if (this.#answered) this.#over.abort()
    const waiting = AbortSignal.any([signal, this.#over.signal])
    return this.#session.clientRequests.ask((message) => this.#outlet.send(message), method, params, waiting)
  }
}

const maxTokenBytes = 256

/** Progress tokens must be integers or short text, because each notification repeats them. */
export function checkProgressToken({ _meta }: Params): void {
  const token = isObject(_meta) ? _meta.progressToken : undefined
  if (token === undefined || Number.isSafeInteger(token)) return
  if (typeof token === 'string' && Buffer.byteLength(token) <= maxTokenBytes) return
  const sentence = `"_meta.progressToken" must be a whole number, or text of at most ${maxTokenBytes} bytes.`
  throw new ProtocolError(rpcCodes.params, sentence)
}

/** Each hop has its own progress token: replaces it by the caller's. */
export function withProgressToken(token: unknown, params: Json): Json {
  const progress = params.value as Params
  return progress.progressToken === token ? params : Json.of({ ...progress, progressToken: token })
}

/** Rejects every request for input, so whatever needs confirmation is not confirmed. */
export const nonInteractivePeer: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'A chat over HTTP cannot ask for input.')),
}

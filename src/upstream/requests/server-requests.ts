import type { Peer } from '../../core/call.ts'
import { type RpcErrorObject, ServerError, ToolwayError, UnsupportedRequest } from '../../core/errors.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { AmbiguousMember, definedBytes } from '../../wire/check-members.ts'
import { serverRequests } from '../../wire/defined-members.ts'
import { errorBytes, type Id, maxMessage, methodNotFound, resultBytes } from '../../wire/message.ts'
import { latestLegacy } from '../../wire/revisions.ts'
import type { Transport } from '../transports/transport.ts'

/** A request from a server to its client: sampling, elicitation or roots. */
export interface ServerRequest {
  readonly id: Id
  readonly method: string
  readonly params: Buffer | undefined
}

/** Maximum number and size of open requests. A request is open until the server has read the response. */
const maxOpenRequests = fixedLimits.serverRequests.value
const maxOpenBytes = maxMessage
/** Maximum number of pauses by open requests together: each request pauses all calls that may have caused it. */
const maxPausedCalls = 4_096
/** Maximum number of Toolway's own replies, such as errors, that the server has not read yet. */
const maxRemarks = 64

/** Forwards each request from a server to the caller that it is for, and the caller's response to the server. */
export class ServerRequests {
  readonly #transport: Transport
  readonly #log: Log
  readonly #open = new Map<Id, AbortController>()
  #openBytes = 0
  #pauses = 0
  #remarks = 0

  constructor(transport: Transport, log: Log) {
    this.#transport = transport
    this.#log = log
  }

  /**
   * Answers a request through the first of `addressees` that responds. Resolves when the response has been sent. The
   * timeouts of `suspects`, the calls that may have caused the request, are paused meanwhile.
   */
  answer(question: ServerRequest, addressees: () => readonly Peer[], suspects: readonly Peer[] = []): Promise<void> {
    const { id, method } = question
    if (method === 'ping') return this.#remark(resultBytes(id, Buffer.from('{}')))
    const defined = definedQuestion(question)
    if ('code' in defined) {
      this.#log.debug({ method: method.slice(0, 100), code: defined.code }, 'rejected a request from a server')
      return this.#remark(errorBytes(id, defined))
    }
    const isTooMuch = this.#openBytes > 0 && this.#openBytes + requestSize(defined) > maxOpenBytes
    if (this.#open.has(id) || this.#open.size >= maxOpenRequests || isTooMuch)
      return this.#remark(errorBytes(id, tooManyRequests))
    if (addressees().length > 0) return this.#ask(defined, addressees, suspects)
    return this.#remark(errorBytes(id, { code: -32603, message: `No caller to forward ${method} to.` }))
  }

  /** Replies with an error, without asking anybody. */
  refuse(id: Id, message: string): Promise<void> {
    return this.#remark(errorBytes(id, { code: invalidParams, message }))
  }

  cancelled(params: Buffer): void {
    const { requestId } = Json.raw<{ requestId?: Id }>(params).value
    if (requestId !== undefined) this.#open.get(requestId)?.abort()
  }

  cancelAll(): void {
    for (const controller of this.#open.values()) controller.abort()
  }

  async #ask(question: ServerRequest, addressees: () => readonly Peer[], suspects: readonly Peer[]): Promise<void> {
    const { id } = question
    const bytes = requestSize(question)
    const paused = suspects.slice(0, maxPausedCalls - this.#pauses)
    const controller = new AbortController()
    this.#open.set(id, controller)
    this.#openBytes += bytes
    this.#pauses += paused.length
    try {
      const answer = await askUntilAnswered(question, addressees, paused, controller.signal)
      if (!controller.signal.aborted) await this.#reply(resultBytes(id, answer))
    } catch (thrown) {
      if (!controller.signal.aborted) await this.#reply(errorBytes(id, replyError(thrown)))
    } finally {
      this.#open.delete(id)
      this.#openBytes -= bytes
      this.#pauses -= paused.length
    }
  }

  /** Sends a reply of our own, unless the server does not read them. */
  async #remark(body: Buffer): Promise<void> {
    if (this.#remarks >= maxRemarks) return
    this.#remarks++
    await this.#reply(body).finally(() => this.#remarks--)
  }

  #reply(body: Buffer): Promise<void> {
    return this.#transport
      .send({ body })
      .catch((error) => this.#log.debug({ err: error }, 'could not send a response to a server'))
  }
}

/** Asks the caller. If the call used for that ends first, asks again through the caller's next call. */
async function askUntilAnswered(
  question: ServerRequest,
  addressees: () => readonly Peer[],
  suspects: readonly Peer[],
  signal: AbortSignal,
): Promise<Json> {
  const { method, params = Buffer.from('{}') } = question
  const tried = new Set<Peer>()
  let failure: unknown
  for (;;) {
    const peer = addressees().find((candidate) => !tried.has(candidate))
    if (!peer) throw failure
    tried.add(peer)
    try {
      return await withPaused(suspects, signal, (until) => peer.ask(method, Json.raw(params), until))
    } catch (thrown) {
      if (!(thrown instanceof ToolwayError && thrown.code === 'CANCELLED') || signal.aborted) throw thrown
      failure = thrown
    }
  }
}

/** The request, reduced to the members that the protocol defines; or the error to reply with (V1). */
function definedQuestion(question: ServerRequest): ServerRequest | RpcErrorObject {
  const { method, params } = question
  const level = Object.hasOwn(serverRequests, method) ? serverRequests[method] : undefined
  if (level === undefined) return { code: methodNotFound, message: `Method not found: ${method.slice(0, 100)}` }
  try {
    return { ...question, params: params && definedBytes(params, level, { revision: latestLegacy }, []) }
  } catch (thrown) {
    if (!(thrown instanceof AmbiguousMember)) throw thrown
    return { code: invalidParams, message: thrown.message }
  }
}

const invalidParams = -32602

/** Runs work while the timeouts of these calls are paused. */
async function withPaused<T>(
  calls: readonly Peer[],
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [first, ...others] = calls.flatMap(({ paused }) => paused ?? [])
  if (!first) return await work(signal)
  const { promise: done, resolve } = Promise.withResolvers<void>()
  // Side by side instead of nested, because there may be more calls than fit on the stack.
  for (const paused of others) void paused(() => done, signal)
  try {
    return await first(work, signal)
  } finally {
    resolve()
  }
}

const requestSize = ({ id, params }: ServerRequest): number => String(id).length + (params?.length ?? 0)

const tooManyRequests = { code: -32600, message: 'Too many open requests, or duplicate request id.' }

/** The error object for the server. An error from the client stays unchanged. */
function replyError(thrown: unknown) {
  if (thrown instanceof ServerError) return thrown.error
  if (thrown instanceof UnsupportedRequest) return { code: methodNotFound, message: thrown.message }
  const error = ToolwayError.from(thrown)
  return { code: error.kind.rpc, message: error.message, data: error.data }
}

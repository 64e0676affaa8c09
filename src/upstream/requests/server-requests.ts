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

/** Forwards each request from a server to the caller that it is for, and the caller's response to the server. */
export interface ServerRequests {
  /**
   * Answers a request through the first of `addressees` that responds. Resolves when the response has been sent. The
   * timeouts of `suspects`, the calls that may have caused the request, are paused meanwhile.
   */
  answer(question: ServerRequest, addressees: () => readonly Peer[], suspects?: readonly Peer[]): Promise<void>
  /** Replies with an error, without asking anybody. */
  refuse(id: Id, message: string): Promise<void>
  cancelled(params: Buffer | undefined): void
  cancelAll(): void
}

/** Maximum number and size of open requests. A request is open until the server has read the response. */
const maxOpen = fixedLimits.serverRequests.value
const maxOpenBytes = maxMessage
/** Maximum number of pauses by open requests together: each request pauses all calls that may have caused it. */
const maxPauses = 4_096
/** Maximum number of Toolway's own replies, such as errors, that the server has not read yet. */
const maxRemarks = 64

export function createServerRequests(transport: Transport, log: Log): ServerRequests {
  const open = new Map<Id, AbortController>()
  let openBytes = 0
  let pauses = 0
  let remarks = 0

  const reply = (body: Buffer): Promise<void> =>
    transport.send({ body }).catch((error) => log.debug({ err: error }, 'could not send a response to a server'))

  const remark = async (body: Buffer): Promise<void> => {
    if (remarks >= maxRemarks) return
    remarks++
    await reply(body).finally(() => remarks--)
  }

  const ask = async (question: ServerRequest, addressees: () => readonly Peer[], suspects: readonly Peer[]) => {
    const { id } = question
    const bytes = sizeOf(question)
    const paused = suspects.slice(0, maxPauses - pauses)
    const controller = new AbortController()
    open.set(id, controller)
    openBytes += bytes
    pauses += paused.length
    try {
      const answer = await askUntilAnswered(question, addressees, paused, controller.signal)
      if (!controller.signal.aborted) await reply(resultBytes(id, answer))
    } catch (thrown) {
      if (!controller.signal.aborted) await reply(errorBytes(id, errorOf(thrown)))
    } finally {
      open.delete(id)
      openBytes -= bytes
      pauses -= paused.length
    }
  }

  return {
    answer(question, addressees, suspects = []) {
      const { id, method } = question
      if (method === 'ping') return remark(resultBytes(id, Buffer.from('{}')))
      const defined = definedQuestion(question)
      if ('code' in defined) {
        log.debug({ method: method.slice(0, 100), code: defined.code }, 'rejected a request from a server')
        return remark(errorBytes(id, defined))
      }
      const isTooMuch = openBytes > 0 && openBytes + sizeOf(defined) > maxOpenBytes
      if (open.has(id) || open.size >= maxOpen || isTooMuch) return remark(errorBytes(id, tooMany))
      if (addressees().length > 0) return ask(defined, addressees, suspects)
      return remark(errorBytes(id, { code: -32603, message: `No caller to forward ${method} to.` }))
    },
    refuse: (id, message) => remark(errorBytes(id, { code: invalidParams, message })),
    cancelled(params) {
      const { requestId } = Json.raw<{ requestId?: Id }>(params ?? Buffer.from('{}')).value
      if (requestId !== undefined) open.get(requestId)?.abort()
    },
    cancelAll() {
      for (const controller of open.values()) controller.abort()
    },
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

const sizeOf = ({ id, params }: ServerRequest): number => String(id).length + (params?.length ?? 0)

const tooMany = { code: -32600, message: 'Too many open requests, or duplicate request id.' }

/** The error object for the server. An error from the client stays unchanged. */
function errorOf(thrown: unknown) {
  if (thrown instanceof ServerError) return thrown.error
  if (thrown instanceof UnsupportedRequest) return { code: methodNotFound, message: thrown.message }
  const error = ToolwayError.from(thrown)
  return { code: error.kind.rpc, message: error.message, data: error.data }
}

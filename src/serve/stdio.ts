import type { Readable, Writable } from 'node:stream'
import type { Access } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { settles } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { type Budgets, createBudgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import { hasMoreValues } from '../json/json-text.ts'
import { createLineReader, joined, toOneLine } from '../wire/bytes.ts'
import { errorBytes, type Id, maxMessage, resultBytes } from '../wire/message.ts'
import { modernRevision } from '../wire/revisions.ts'
import { actingAs, agentOfParams } from './auth/identity.ts'
import type { ResponseChannel } from './calls/operations.ts'
import { errorResponse, ProtocolError, recordIfMalformed, recordMalformed, rpcCodes } from './errors.ts'
import { maxUnread } from './http/sse-stream.ts'
import {
  definedNotificationParams,
  type InboundNotification,
  type InboundRequest,
  readInbound,
} from './inbound-message.ts'
import {
  answerBatch,
  type Batch,
  batchPieces,
  createLegacyProtocol,
  type GatewayInfo,
  isBatch,
  readBatch,
} from './mcp-legacy/protocol.ts'
import { protocolOf, statelessCaller, validateRequest } from './mcp-stateless/envelope.ts'
import { createStatelessProtocol, type StatelessProtocol, type StatelessRequest } from './mcp-stateless/protocol.ts'
import { statelessErrorResponse } from './mcp-stateless/responses.ts'
import { createSession, listChangedNotifications, type Session } from './session/session.ts'

/** How long calls in flight may continue after the client has closed its end of the connection. */
const graceMs = 2_000

/** Serves one client over a pair of streams. Resolves when the input has ended and the calls in flight are answered. */
export async function serveStdio(options: {
  readonly input: Readable
  readonly output: Writable
  readonly access: Access
  readonly info: GatewayInfo
  readonly caller: Caller
  /** Maximum number of JSON values per message. */
  readonly maxValues?: number
  readonly budgets?: Budgets
  readonly clock: Clock
  readonly log: Log
}): Promise<void> {
  const { input, access, info, caller, maxValues = 100_000, budgets = createBudgets(), clock, log } = options
  // A client that starts its own gateway waits for it, often for no longer than ten seconds. It is told of list changes.
  const immediate = true
  const legacy = createLegacyProtocol({ access, info, immediate, log })
  const writer = createLineWriter(options.output, input)
  const stateless = createStatelessProtocol({ access, info, budgets, immediate, clock, log })
  const statelessRequests = createStatelessStdio({ protocol: stateless, access, caller, writer, log })
  const answering = new Set<Promise<void>>()
  let session: Session | undefined
  /** Whether the initialize result was sent. No notifications are sent before it. */
  let welcomed = false

  const malformed = (fault: string) => recordMalformed(access, caller, fault)

  const refuse = (id: Id | null, code: number, message: string) => {
    malformed(message)
    writer.write(errorBytes(id, { code, message }))
  }

  const initialize = async ({ id, method, params }: InboundRequest): Promise<void> => {
    try {
      if (session !== undefined) throw new ProtocolError(rpcCodes.request, 'This session is already initialized.')
      const client = legacy.negotiate(params)
      const acting = actingAs(access, caller, agentOfParams(params))
      session = createSession({ access, caller: acting, client, budgets, log, tell: writer.offer })
      writer.write(resultBytes(id, await legacy.initializeResult(session)))
      welcomed = true
    } catch (thrown) {
      recordIfMalformed(access, caller, thrown)
      writer.write(joined(errorResponse(id, method, thrown, log).message))
    }
  }

  /** The channel for one request. All requests share one stream, so cancelling a request does not close anything. */
  const newChannel = (): ResponseChannel => ({ owner: undefined, send: writer.offer, abandon() {} })

  const answer = async (current: Session, request: InboundRequest) => {
    const answer = await legacy.request(current, request, newChannel(), current.caller)
    if (answer !== undefined) writer.write(joined(answer.message))
  }

  const answerAll = async (current: Session, batch: Batch) => {
    const { caller } = current
    const outlet = newChannel()
    const answers = await answerBatch({ protocol: legacy, session: current, batch, outlet, caller, malformed })
    if (answers.length > 0) writer.write(joined(batchPieces(answers)))
  }

  const track = (work: Promise<void>) => {
    const done = work.finally(() => answering.delete(done))
    answering.add(done)
  }

  const receive = (line: Buffer) => {
    if (isBlank(line)) return
    if (hasMoreValues(line, maxValues)) return tooManyValues()
    const batch = session !== undefined && isBatch(line) ? readBatch(session, line) : undefined
    if (session !== undefined && batch !== undefined) {
      if ('kind' in batch) refuse(batch.id, batch.code, batch.message)
      else track(answerAll(session, batch))
      return
    }
    const inbound = readInbound(line)
    if (inbound.kind === 'invalid') {
      refuse(inbound.id, inbound.code, inbound.message)
    } else if (protocolOf(inbound) === 'stateless') {
      if (inbound.kind === 'request') track(statelessRequests.request(inbound))
      else if (inbound.kind === 'notification') statelessRequests.notification(inbound)
    } else if (inbound.kind === 'request' && inbound.method === 'initialize') track(initialize(inbound))
    else if (session !== undefined) {
      if (inbound.kind === 'response') {
        const ambiguous = session.clientRequests.settle(inbound)
        if (ambiguous !== undefined) malformed(ambiguous)
      } else if (inbound.kind === 'notification') legacy.notification(session, inbound)
      else track(answer(session, inbound))
    } else if (inbound.kind === 'request') {
      if (inbound.method === 'ping') writer.write(resultBytes(inbound.id, Buffer.from('{}')))
      else refuse(inbound.id, rpcCodes.request, 'The session is not open yet: send "initialize" first.')
    } else if (inbound.kind === 'notification') statelessRequests.notification(inbound)
  }

  const tooManyValues = () => {
    const message = `A message has more than ${maxValues} values and was dropped: send fewer, or raise server.maxValues.`
    refuse(null, rpcCodes.request, message)
  }

  const tooLong = () => {
    malformed('a line is too long')
    const message = `A line is longer than ${maxMessage} bytes and was dropped: send less in one message.`
    writer.write(errorBytes(null, { code: rpcCodes.request, message }))
  }

  const changes = access.onChange((kinds, only) => {
    const concerned = only === undefined || session?.caller.session === only
    if (welcomed && concerned) for (const message of listChangedNotifications(kinds)) writer.offer(message)
  })
  const lines = createLineReader({ maxLength: maxMessage, line: receive, tooLong })
  input.on('data', lines.push)
  await Promise.race([ended(input), writer.closed])
  input.off('data', lines.push).pause()
  lines.end()

  await settles(Promise.race([Promise.allSettled(answering), writer.closed]), graceMs, clock)
  changes[Symbol.dispose]()
  stateless.drain()
  statelessRequests.cancelAll()
  for (const statelessCaller of statelessRequests.callers()) access.sessionEnded(statelessCaller)
  session?.[Symbol.dispose]()
  await settles(writer.flushed(), graceMs, clock)
}

const ended = (input: Readable): Promise<void> =>
  new Promise((resolve) => {
    const over = () => resolve()
    input.on('end', over).on('close', over).on('error', over)
  })

const isBlank = (line: Buffer): boolean => line.every((byte) => byte === 0x20 || byte === 0x09)

export type LineWriter = ReturnType<typeof createLineWriter>

const lineEnd = Buffer.from('\n')

export function createLineWriter(output: Writable, input: Readable) {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let open = true
  const gone = () => {
    open = false
    resolve()
  }
  // An error such as EPIPE means that the reader has closed its end.
  output.on('error', gone).on('close', gone)
  output.on('drain', () => input.resume())

  /** Writes a response. Pauses the input while the reader is behind. */
  const write = (message: Buffer) => {
    if (open && !output.write(Buffer.concat([toOneLine(message), lineEnd]))) input.pause()
  }

  return {
    write,
    /** Writes a message that may be lost. Returns false, without writing, if the reader is too far behind. */
    offer(message: Buffer): boolean {
      if (!open || output.writableLength > maxUnread) return false
      write(message)
      return true
    },
    /** Resolves when the reader has closed the stream. */
    closed,
    /** Resolves when everything written so far is flushed. */
    flushed: () =>
      new Promise<void>((resolve) => {
        if (!open || output.writableLength === 0) resolve()
        else output.write('', () => resolve())
      }),
  }
}

/** Maximum number of requests in flight. */
const maxRequests = 1_000

/** The stateless protocol over stdio. All requests share one stream and are told apart by their ids. */
function createStatelessStdio(options: {
  readonly protocol: StatelessProtocol
  readonly access: Access
  readonly caller: Caller
  readonly writer: LineWriter
  readonly log: Log
}) {
  const { protocol, access, writer, log } = options
  const requests = new Map<Id, ResponseChannel>()
  const callers = new Map<string, Caller>()

  const admitted = (inbound: InboundRequest): StatelessRequest => {
    const envelope = validateRequest(inbound)
    const caller = statelessCaller(actingAs(access, options.caller, agentOfParams(inbound.params)), envelope)
    callers.set(caller.session, caller)
    return { ...inbound, params: protocol.params(inbound, envelope, caller), envelope, caller }
  }

  const listen = (request: StatelessRequest, channel: ResponseChannel) => {
    channel.owner = protocol.streams.open(request, request.caller, {
      send: writer.offer,
      end(answer) {
        requests.delete(request.id)
        writer.write(answer)
      },
    })
  }

  const answer = async (request: StatelessRequest) => {
    const { id } = request
    const channel: ResponseChannel = { owner: undefined, send: writer.offer, abandon() {} }
    requests.set(id, channel)
    if (request.method === 'subscriptions/listen') {
      listen(request, channel)
      return
    }
    const answer = await protocol.request(request, channel)
    // If the request was cancelled, do not respond. Its id may already be in use for another request.
    if (requests.get(id) !== channel) return
    requests.delete(id)
    if (answer !== undefined) writer.write(joined(answer.message))
  }

  return {
    /** Handles a request. Resolves when it is answered or cancelled. Never rejects. */
    async request(inbound: InboundRequest): Promise<void> {
      const { id } = inbound
      if (requests.has(id)) {
        const message = 'A request with this id is still in flight: give each request its own id.'
        recordMalformed(access, options.caller, message)
        writer.write(errorBytes(id, { code: rpcCodes.request, message }))
        return
      }
      try {
        if (requests.size >= maxRequests) {
          const sentence = `There are ${maxRequests} requests in flight: wait for some of them to be answered.`
          throw new ToolwayError('OVERLOADED', sentence)
        }
        await answer(admitted(inbound))
      } catch (thrown) {
        requests.delete(id)
        recordIfMalformed(access, options.caller, thrown)
        const request = { ...inbound, envelope: { capabilities: {} } }
        writer.write(joined(statelessErrorResponse(request, thrown, log).message))
      }
    },
    notification(inbound: InboundNotification): void {
      if (inbound.method !== 'notifications/cancelled') return
      const params = definedNotificationParams(inbound, { revision: modernRevision }, log, (fault) =>
        recordMalformed(access, options.caller, fault),
      )
      if (params === undefined) return
      const id = params.requestId as Id
      const { owner } = requests.get(id) ?? {}
      requests.delete(id)
      owner?.cancel()
    },
    /** All callers for which servers may hold state. */
    callers: () => callers.values(),
    cancelAll(): void {
      for (const { owner } of requests.values()) owner?.cancel()
      requests.clear()
    },
  }
}

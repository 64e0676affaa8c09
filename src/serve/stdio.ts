import type { Readable, Writable } from 'node:stream'
import type { Caller } from '../core/call.ts'
import { settles } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { hasMoreValues } from '../json/json-text.ts'
import { InFlight } from '../lib/in-flight.ts'
import { createLineReader, joined, toOneLine } from '../wire/bytes.ts'
import { errorBytes, type Id, maxMessage, resultBytes } from '../wire/message.ts'
import { modernRevision } from '../wire/revisions.ts'
import { actingAs, agentOfParams } from './auth/identity.ts'
import type { ResponseChannel } from './calls/operations.ts'
import type { ServeContext } from './context.ts'
import { errorResponse, ProtocolError, recordIfMalformed, recordMalformed, rpcCodes } from './errors.ts'
import { maxUnread } from './http/sse-stream.ts'
import {
  definedNotificationParams,
  type InboundMessage,
  type InboundNotification,
  type InboundRequest,
  readInbound,
} from './inbound-message.ts'
import { answerBatch, type Batch, batchPieces, isBatch, LegacyProtocol, readBatch } from './mcp-legacy/protocol.ts'
import { statelessCaller, validateRequest } from './mcp-stateless/envelope.ts'
import { StatelessProtocol, type StatelessRequest } from './mcp-stateless/protocol.ts'
import { statelessErrorResponse } from './mcp-stateless/responses.ts'
import { protocolOf } from './protocol-era.ts'
import { listChangedNotifications, Session } from './session/session.ts'

/** How long calls in flight may continue after the client has closed its end of the connection. */
const inputEndGraceMs = 2_000

interface StdioOptions extends ServeContext {
  readonly input: Readable
  readonly output: Writable
  readonly caller: Caller
  readonly maxValues: number
}

/** Serves one client over a pair of streams. Resolves when the input has ended and the calls in flight are answered. */
export async function serveStdio(
  given: Omit<StdioOptions, 'budgets' | 'maxValues'> & Partial<Pick<StdioOptions, 'budgets' | 'maxValues'>>,
): Promise<void> {
  const options = { budgets: createBudgets(), maxValues: 100_000, ...given }
  const { input, output, clock } = options
  const writer = new LineWriter(output, input)
  const client = new StdioClient(options, writer)
  const lines = createLineReader({
    maxLength: maxMessage,
    line: (line) => client.receive(line),
    tooLong: () => client.refuseLongLine(),
  })
  input.on('data', lines.push)
  await Promise.race([inputEnd(input), writer.closed])
  input.off('data', lines.push).pause()
  lines.end()
  await settles(Promise.race([client.answered(), writer.closed]), inputEndGraceMs, clock)
  client[Symbol.dispose]()
  await settles(writer.flushed(), inputEndGraceMs, clock)
}

const inputEnd = (input: Readable): Promise<void> =>
  new Promise((resolve) => {
    const over = () => resolve()
    input.on('end', over).on('close', over).on('error', over)
  })

const isBlankLine = (line: Buffer): boolean => line.every((byte) => byte === 0x20 || byte === 0x09)

/** The client at the other end. Each of its messages may use either protocol. */
class StdioClient implements Disposable {
  readonly #options: StdioOptions
  readonly #writer: LineWriter
  readonly #legacy: LegacyProtocol
  readonly #stateless: StatelessStdio
  readonly #changes: Disposable
  readonly #answering = new Set<Promise<void>>()
  #session: Session | undefined
  /** Whether the initialize result was sent. No notifications are sent before it. */
  #isWelcome = false

  constructor(options: StdioOptions, writer: LineWriter) {
    this.#options = options
    this.#writer = writer
    const { access } = options
    // A client that starts its own gateway waits for it, often for no longer than ten seconds. It is told of list changes.
    this.#legacy = new LegacyProtocol(options, true)
    this.#stateless = new StatelessStdio(options, writer)
    this.#changes = access.onChange((kinds, only) => {
      const concerned = only === undefined || this.#session?.caller.session === only
      if (this.#isWelcome && concerned) for (const message of listChangedNotifications(kinds)) writer.offer(message)
    })
  }

  receive(line: Buffer): void {
    if (isBlankLine(line)) return
    const { maxValues } = this.#options
    if (hasMoreValues(line, maxValues)) {
      const sentence = `A message has more than ${maxValues} values and was dropped: send fewer, or raise server.maxValues.`
      this.#refuse(null, rpcCodes.request, sentence)
      return
    }
    const session = this.#session
    const batch = session && isBatch(line) ? readBatch(session, line) : undefined
    if (session && batch) {
      if ('kind' in batch) this.#refuse(batch.id, batch.code, batch.message)
      else this.#track(this.#answerAll(session, batch))
      return
    }
    const inbound = readInbound(line)
    if (inbound.kind === 'invalid') this.#refuse(inbound.id, inbound.code, inbound.message)
    else if (protocolOf(inbound) === 'legacy') this.#receiveLegacy(inbound)
    else if (inbound.kind === 'request') this.#track(this.#stateless.request(inbound))
    else if (inbound.kind === 'notification') this.#stateless.notification(inbound)
  }

  #receiveLegacy(inbound: InboundMessage): void {
    const session = this.#session
    if (inbound.kind === 'request' && inbound.method === 'initialize') this.#track(this.#initialize(inbound))
    else if (session !== undefined) {
      if (inbound.kind === 'response') {
        const ambiguous = session.clientRequests.settle(inbound)
        if (ambiguous !== undefined) this.#malformed(ambiguous)
      } else if (inbound.kind === 'notification') this.#legacy.notification(session, inbound)
      else this.#track(this.#answer(session, inbound))
    } else if (inbound.kind === 'request') {
      if (inbound.method === 'ping') this.#writer.write(resultBytes(inbound.id, Buffer.from('{}')))
      else this.#refuse(inbound.id, rpcCodes.request, 'The session is not open yet: send "initialize" first.')
    } else if (inbound.kind === 'notification') this.#stateless.notification(inbound)
  }

  refuseLongLine(): void {
    this.#malformed('a line is too long')
    const message = `A line is longer than ${maxMessage} bytes and was dropped: send less in one message.`
    this.#writer.write(errorBytes(null, { code: rpcCodes.request, message }))
  }

  /** Resolves when the requests that are in flight now have been answered. */
  answered(): Promise<unknown> {
    return Promise.allSettled(this.#answering)
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]()
    this.#stateless[Symbol.dispose]()
    this.#session?.[Symbol.dispose]()
  }

  #malformed(fault: string): void {
    recordMalformed(this.#options.access, this.#options.caller, fault)
  }

  #refuse(id: Id | null, code: number, message: string): void {
    this.#malformed(message)
    this.#writer.write(errorBytes(id, { code, message }))
  }

  #track(work: Promise<void>): void {
    const done = work.finally(() => this.#answering.delete(done))
    this.#answering.add(done)
  }

  async #initialize({ id, method, params }: InboundRequest): Promise<void> {
    const { access, caller, log } = this.#options
    const writer = this.#writer
    try {
      if (this.#session) throw new ProtocolError(rpcCodes.request, 'This session is already initialized.')
      const client = this.#legacy.negotiate(params)
      const acting = actingAs(access, caller, agentOfParams(params))
      this.#session = new Session({ ...this.#options, caller: acting, client }, (message) => writer.offer(message))
      writer.write(resultBytes(id, await this.#legacy.initializeResult(this.#session)))
      this.#isWelcome = true
    } catch (thrown) {
      recordIfMalformed(access, caller, thrown)
      writer.write(joined(errorResponse(id, method, thrown, log).message))
    }
  }

  async #answer(session: Session, request: InboundRequest): Promise<void> {
    const answer = await this.#legacy.request(session, request, channelTo(this.#writer), session.caller)
    if (answer !== undefined) this.#writer.write(joined(answer.message))
  }

  async #answerAll(session: Session, batch: Batch): Promise<void> {
    const { caller } = session
    const outlet = channelTo(this.#writer)
    const malformed = (fault: string) => this.#malformed(fault)
    const answers = await answerBatch({ protocol: this.#legacy, session, batch, outlet, caller, malformed })
    if (answers.length > 0) this.#writer.write(joined(batchPieces(answers)))
  }
}

/** The channel for one request. All requests share one stream, so cancelling a request does not close anything. */
const channelTo = (writer: LineWriter): ResponseChannel => ({
  owner: undefined,
  send: (message) => writer.offer(message),
  abandon() {},
})

const maxStatelessRequests = 1_000

/** The stateless protocol over stdio. All requests share one stream and are told apart by their ids. */
class StatelessStdio implements Disposable {
  readonly #protocol: StatelessProtocol
  readonly #options: StdioOptions
  readonly #writer: LineWriter
  #requests = new InFlight<Id, ResponseChannel>()
  /** All callers for which servers may hold state. */
  readonly #callers = new Map<string, Caller>()

  constructor(options: StdioOptions, writer: LineWriter) {
    this.#protocol = new StatelessProtocol(options, true)
    this.#options = options
    this.#writer = writer
  }

  /** Handles a request. Resolves when it is answered or cancelled. Never rejects. */
  async request(inbound: InboundRequest): Promise<void> {
    const { access, caller, log } = this.#options
    const { id } = inbound
    if (this.#requests.has(id)) {
      const message = 'A request with this id is still in flight: give each request its own id.'
      recordMalformed(access, caller, message)
      this.#writer.write(errorBytes(id, { code: rpcCodes.request, message }))
      return
    }
    try {
      if (this.#requests.size >= maxStatelessRequests) {
        const sentence = `There are ${maxStatelessRequests} requests in flight: wait for some of them to be answered.`
        throw new ToolwayError('OVERLOADED', sentence)
      }
      await this.#answer(this.#admit(inbound))
    } catch (thrown) {
      this.#requests.take(id)
      recordIfMalformed(access, caller, thrown)
      const request = { ...inbound, envelope: { capabilities: {} } }
      this.#writer.write(joined(statelessErrorResponse(request, thrown, log).message))
    }
  }

  notification(inbound: InboundNotification): void {
    const { access, caller, log } = this.#options
    if (inbound.method !== 'notifications/cancelled') return
    const malformed = (fault: string) => recordMalformed(access, caller, fault)
    const params = definedNotificationParams(inbound, { revision: modernRevision }, log, malformed)
    if (params) this.#requests.take(params.requestId as Id)?.owner?.cancel()
  }

  [Symbol.dispose](): void {
    this.#protocol.drain()
    for (const { owner } of this.#requests.values()) owner?.cancel()
    this.#requests = new InFlight()
    for (const caller of this.#callers.values()) this.#options.access.sessionEnded(caller)
  }

  #admit(inbound: InboundRequest): StatelessRequest {
    const envelope = validateRequest(inbound)
    const acting = actingAs(this.#options.access, this.#options.caller, agentOfParams(inbound.params))
    const caller = statelessCaller(acting, envelope)
    this.#callers.set(caller.session, caller)
    return { ...inbound, params: this.#protocol.params(inbound, envelope, caller), envelope, caller }
  }

  async #answer(request: StatelessRequest): Promise<void> {
    const { id } = request
    const channel = channelTo(this.#writer)
    this.#requests.set(id, channel)
    if (request.method === 'subscriptions/listen') {
      channel.owner = this.#protocol.streams.open(request, request.caller, {
        send: channel.send,
        end: (answer) => {
          this.#requests.take(id)
          this.#writer.write(answer)
        },
      })
      return
    }
    const answer = await this.#protocol.request(request, channel)
    // If the request was cancelled, do not respond. Its id may already be in use for another request.
    if (this.#requests.get(id) !== channel) return
    this.#requests.take(id)
    if (answer !== undefined) this.#writer.write(joined(answer.message))
  }
}

const lineEnd = Buffer.from('\n')

class LineWriter {
  readonly closed: Promise<void>
  readonly #output: Writable
  readonly #input: Readable
  #isOpen = true

  constructor(output: Writable, input: Readable) {
    this.#output = output
    this.#input = input
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    const gone = () => {
      this.#isOpen = false
      resolve()
    }
    // An error such as EPIPE means that the reader has closed its end.
    output.on('error', gone).on('close', gone)
    output.on('drain', () => input.resume())
  }

  /** Writes a response. Pauses the input while the reader is behind. */
  write(message: Buffer): void {
    if (this.#isOpen && !this.#output.write(Buffer.concat([toOneLine(message), lineEnd]))) this.#input.pause()
  }

  /** Writes a message that may be lost. Returns false, without writing, if the reader is too far behind. */
  offer(message: Buffer): boolean {
    if (!this.#isOpen || this.#output.writableLength > maxUnread) return false
    this.write(message)
    return true
  }

  async flushed(): Promise<void> {
    const output = this.#output
    if (this.#isOpen && output.writableLength > 0)
      await new Promise<void>((resolve) => void output.write('', () => resolve()))
  }
}

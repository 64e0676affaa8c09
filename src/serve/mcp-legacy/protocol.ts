import type { Access } from '../../core/access.ts'
import { type Caller, knownCapabilities, type LogLevel, logLevels } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { eachElement } from '../../json/json-text.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { joined, lengthOf, type Pieces, toUtf8 } from '../../wire/bytes.ts'
import { toLegacy } from '../../wire/convert-result.ts'
import { errorBytes, type Id, resultPieces } from '../../wire/message.ts'
import { latestLegacy, legacyRevisions } from '../../wire/revisions.ts'
import { actingAs, agentOfParams } from '../auth/identity.ts'
import {
  capabilitiesFault,
  gatewayCapabilities,
  isLogLevel,
  withoutTasksExtension,
} from '../calls/client-capabilities.ts'
import {
  checkProgressToken,
  createOperations,
  missingServersKey,
  RequestPeer,
  type ResponseChannel,
  textParam,
} from '../calls/operations.ts'
import {
  type EncodedResponse,
  errorResponse,
  ProtocolError,
  recordIfMalformed,
  recordMalformed,
  rpcCodes,
} from '../errors.ts'
import {
  definedNotificationParams,
  definedParams,
  type InboundMessage,
  type InboundNotification,
  type InboundRequest,
  type Params,
  readInbound,
  type UnreadableMessage,
} from '../inbound-message.ts'
import type { Session, SessionClient } from '../session/session.ts'
import { legacyToolList } from './tool-list.ts'

/** What the gateway tells clients about itself. */
export interface GatewayInfo {
  readonly name: string
  readonly version: string
  readonly instructions?: string
}

export type LegacyProtocol = ReturnType<typeof createLegacyProtocol>

/** Maximum number of requests in flight per session. */
const maxRequests = 1_000

const nothing: Pieces = [Buffer.from('{}')]
const brace = Buffer.from('{')

export const isLegacyRevision = (revision: unknown): revision is string =>
  (legacyRevisions as readonly unknown[]).includes(revision)

/** Implements the MCP revisions with sessions, 2024-11-05 to 2025-11-25, over HTTP or stdio. */
export function createLegacyProtocol(options: {
  readonly access: Access
  readonly info: GatewayInfo
  /** Whether to answer `initialize` with what is known, without waiting for servers. */
  readonly immediate?: boolean
  readonly log: Log
}) {
  const { access, info, log } = options
  const form = ({ body, plain }: Result) => [plain ? body.bytes : toLegacy(body.bytes)]
  const operations = createOperations(access, form, legacyToolList)

  const list = async (kind: Kind, params: Params, caller: Caller): Promise<Pieces> => {
    const { members, missing } = await operations.list(kind, params, caller)
    const end = missing.length === 0 ? '}' : `,"_meta":${JSON.stringify({ [missingServersKey]: missing })}}`
    return [brace, ...members, Buffer.from(end)]
  }

  const perform = (
    session: Session,
    request: InboundRequest,
    caller: Caller,
    peer: RequestPeer,
  ): Promise<Pieces> | Pieces => {
    const { method, params } = request
    checkProgressToken(params)
    switch (method) {
      case 'tools/call':
        return operations.callTool(request, caller, peer)
      case 'tools/list':
        return list('tool', params, caller)
      case 'resources/list':
        return list('resource', params, caller)
      case 'resources/templates/list':
        return list('template', params, caller)
      case 'resources/read':
        return operations.readResource(request, caller, peer)
      case 'prompts/list':
        return list('prompt', params, caller)
      case 'prompts/get':
        return operations.getPrompt(request, caller, peer)
      case 'completion/complete':
        return operations.complete(request, caller, peer)
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
        return operations.task(method, request, caller, peer)
      case 'resources/subscribe':
        return session.subscriptions.add(textParam(params, 'uri'), caller).then(() => nothing)
      case 'resources/unsubscribe':
        session.subscriptions.remove(textParam(params, 'uri'), caller)
        return nothing
      case 'logging/setLevel':
        session.logLevel = levelOf(params)
        return nothing
      case 'ping':
        return nothing
      case 'initialize':
        throw new ProtocolError(rpcCodes.request, 'This session is already initialized.')
      default:
        throw new ProtocolError(rpcCodes.method, `Unknown method ${quote(method)}.`)
    }
  }

  return {
    /** Negotiates the revision. Throws if the client does not name one or declares too many capabilities. */
    negotiate(params: Params): SessionClient {
      if (typeof params.protocolVersion !== 'string') {
        throw new ProtocolError(rpcCodes.params, '"initialize" must have a "protocolVersion".')
      }
      const revision = isLegacyRevision(params.protocolVersion) ? params.protocolVersion : latestLegacy
      const { capabilities } = definedParams({ method: 'initialize', params }, { revision }, log)
      const declared = isRecord(capabilities) ? capabilities : {}
      const fault = capabilitiesFault(declared)
      if (fault !== undefined) throw new ProtocolError(rpcCodes.params, `The client's "capabilities" ${fault}.`)
      return { revision, capabilities: knownCapabilities(withoutTasksExtension(declared)) }
    },

    async initializeResult({ revision, caller }: Session): Promise<Buffer> {
      const { name, version } = info
      // Wait briefly for servers, because their capabilities are known only once they are ready.
      const view = access.view(caller)
      view.conversationStarted?.()
      const ready = view.ready('brief')
      if (!options.immediate) await ready
      const offers = access.offers(caller)
      const instructions = [info.instructions, offers.instructions].filter(Boolean).join('\n\n')
      return Json.of({
        protocolVersion: revision,
        // The gateway's own capabilities override the servers' capabilities.
        capabilities: { ...withoutTasksExtension(offers.capabilities), ...gatewayCapabilities },
        serverInfo: { name, version },
        ...(instructions !== '' && { instructions }),
      }).bytes
    },

    /** Handles a request. Resolves with undefined if it was cancelled. Never rejects. */
    async request(
      session: Session,
      received: InboundRequest,
      outlet: ResponseChannel,
      caller: Caller,
      /** Whether the transport has resolved the agent. If so, only a message that names one changes it. */
      agentResolved = false,
    ): Promise<EncodedResponse | undefined> {
      const { id, method } = received
      const { requests } = session
      if (requests.has(id)) {
        const message = 'A request with this id is still in flight in this session: give each request its own id.'
        recordMalformed(access, caller, message)
        return { message: [errorBytes(id, { code: rpcCodes.request, message })] }
      }
      if (requests.size >= maxRequests) {
        const sentence = `This session has ${maxRequests} requests in flight: wait for some of them to be answered.`
        return errorResponse(id, method, new ToolwayError('OVERLOADED', sentence), log)
      }
      let request: InboundRequest
      try {
        request = { ...received, params: definedParams(received, session, log) }
      } catch (thrown) {
        recordIfMalformed(access, caller, thrown)
        return errorResponse(id, method, thrown, log)
      }
      const peer = new RequestPeer(session, request, outlet)
      try {
        const named = agentOfParams(request.params)
        const acting = agentResolved && named === undefined ? caller : actingAs(access, caller, named)
        const result = await perform(session, request, acting, peer)
        return peer.signal.aborted ? undefined : { message: resultPieces(id, result) }
      } catch (thrown) {
        if (peer.signal.aborted) return undefined
        recordIfMalformed(access, caller, thrown)
        return errorResponse(id, method, thrown, log)
      } finally {
        peer.answered()
      }
    },

    /** The response to a request in a batch whose own response is too large for the batch. */
    leftOut: ({ id, method }: InboundRequest): EncodedResponse =>
      errorResponse(id, method, new ToolwayError('OUTCOME_UNKNOWN', leftOutOfBatch), log),

    notification(session: Session, notification: InboundNotification): void {
      const { method } = notification
      const params = definedNotificationParams(notification, session, log, (fault) =>
        recordMalformed(access, session.caller, fault),
      )
      if (params === undefined) return
      if (method === 'notifications/cancelled') session.requests.get(params.requestId as Id)?.cancel()
      else if (method === 'notifications/roots/list_changed') access.notifyServers(session.caller, method)
    },
  }
}

function levelOf({ level }: Params): LogLevel {
  if (isLogLevel(level)) return level
  throw new ProtocolError(rpcCodes.params, `"level" must be one of ${logLevels.join(', ')}.`)
}

const revisionWithBatches = '2025-03-26'

const maxMessages = 100

/** Maximum size of the responses to a batch: the same as for a single result. */
const maxBatchBytes = 16 * 1024 * 1024

const leftOutOfBatch = `The request was handled, but its response was left out: the responses to a batch are limited to ${maxBatchBytes / 1024 / 1024} MiB in total. To get it, send the request on its own, unless it must not run twice.`

export type Batch = readonly (InboundMessage | UnreadableMessage)[]

export const isBatch = (bytes: Buffer): boolean => /^[ \t\r\n]*\[/.test(bytes.toString('latin1', 0, 64))

/** Parses a batch. Returns undefined if the revision has no batches, or the text is not a JSON array. */
export function readBatch(session: Session, bytes: Buffer): Batch | UnreadableMessage | undefined {
  if (session.revision !== revisionWithBatches) return undefined
  const text = toUtf8(bytes)
  const messages: Buffer[] = []
  const isWhole = eachElement(text, (start, end) => messages.push(text.subarray(start, end)) <= maxMessages)
  if (messages.length > maxMessages) return invalidBatch(`A batch may have at most ${maxMessages} messages.`)
  if (!isWhole) return undefined
  if (messages.length === 0) return invalidBatch('A batch must have at least one message.')
  return messages.map(readInbound)
}

const invalidBatch = (message: string): UnreadableMessage => ({
  kind: 'invalid',
  id: null,
  code: rpcCodes.request,
  message,
})

/** Handles the messages of a batch like messages that arrive one after the other, and collects the responses. */
export async function answerBatch(options: {
  readonly protocol: LegacyProtocol
  readonly session: Session
  readonly batch: Batch
  readonly outlet: ResponseChannel
  readonly caller: Caller
  readonly agentResolved?: boolean
  /** Returns what the caller's next request has to wait for. */
  turn?(): Promise<void> | undefined
  /** Called for each message that violates the protocol. */
  malformed(fault: string): void
}): Promise<readonly Buffer[]> {
  const { protocol, session, batch, outlet, caller } = options
  const parts: ResponseChannel[] = []
  let isCancelled = false
  let room = maxBatchBytes
  outlet.owner = {
    cancel() {
      isCancelled = true
      for (const { owner } of parts) owner?.cancel()
    },
  }
  const respond = async (request: InboundRequest): Promise<Buffer | undefined> => {
    const { promise: abandoned, resolve } = Promise.withResolvers<undefined>()
    const send = (message: Buffer) => outlet.send(message)
    const part: ResponseChannel = { owner: undefined, send, abandon: () => resolve(undefined) }
    parts.push(part)
    const answered = protocol.request(session, request, part, caller, options.agentResolved)
    const { message } = (await Promise.race([answered, abandoned])) ?? {}
    if (message === undefined) return undefined
    const size = lengthOf(message)
    if (size > room) return joined(protocol.leftOut(request).message)
    room -= size
    return joined(message)
  }
  const answers: (Promise<Buffer | undefined> | Buffer)[] = []
  for (const inbound of batch) {
    await options.turn?.()
    if (isCancelled || session.ended.aborted) break
    if (inbound.kind === 'request') answers.push(respond(inbound))
    else if (inbound.kind === 'notification') protocol.notification(session, inbound)
    else {
      const fault = inbound.kind === 'invalid' ? inbound.message : session.clientRequests.settle(inbound)
      if (fault !== undefined) options.malformed(fault)
      if (inbound.kind === 'invalid')
        answers.push(errorBytes(inbound.id, { code: inbound.code, message: inbound.message }))
    }
  }
  return (await Promise.all(answers)).filter((answer) => answer !== undefined)
}

/** One JSON array of the responses, of which there is at least one. */
export const batchPieces = (answers: readonly Buffer[]): Pieces =>
  answers.flatMap((answer, index) => [Buffer.from(index === 0 ? '[' : ','), answer]).concat(Buffer.from(']'))

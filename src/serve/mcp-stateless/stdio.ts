import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { joined } from '../../wire/bytes.ts'
import { errorBytes, type Id } from '../../wire/message.ts'
import { modernRevision } from '../../wire/revisions.ts'
import { actingAs, agentOfParams } from '../auth/identity.ts'
import type { ResponseChannel } from '../calls/operations.ts'
import { recordIfMalformed, recordMalformed, rpcCodes } from '../errors.ts'
import { definedNotificationParams, type InboundNotification, type InboundRequest } from '../inbound-message.ts'
import type { LineWriter } from '../line-writer.ts'
import { statelessCaller } from './envelope.ts'
import type { StatelessProtocol, StatelessRequest } from './protocol.ts'
import { validateRequest } from './request-headers.ts'
import { statelessErrorResponse } from './responses.ts'

/** Maximum number of requests in flight. */
const maxRequests = 1_000

/** The stateless protocol over stdio. All requests share one stream and are told apart by their ids. */
export function createStatelessStdio(options: {
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

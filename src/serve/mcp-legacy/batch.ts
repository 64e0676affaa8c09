import type { Caller } from '../../core/call.ts'
import { elements } from '../../lib/json-text/scan.ts'
import { joined, toCleanLine } from '../../wire/bytes.ts'
import { errorBytes } from '../../wire/message.ts'
import type { ResponseChannel } from '../calls/request-peer.ts'
import { type InboundMessage, readInbound, type UnreadableMessage } from '../inbound-message.ts'
import type { Session } from '../session/session.ts'
import type { LegacyProtocol } from './protocol.ts'

const revisionWithBatches = '2025-03-26'

const maxMessages = 100

export type Batch = readonly (InboundMessage | UnreadableMessage)[]

export const isBatch = (bytes: Buffer): boolean => /^[ \t\r\n]*\[/.test(bytes.toString('latin1', 0, 64))

/** Returns undefined if the session's revision has no batches, or the batch is empty, too large or not JSON. */
export function readBatch(session: Session, bytes: Buffer): Batch | undefined {
  if (session.revision !== revisionWithBatches) return undefined
  const messages = elements(toCleanLine(bytes), maxMessages)
  if (messages === undefined || messages.length === 0) return undefined
  return messages.map(readInbound)
}

/** Handles all messages concurrently; resolves with the responses when all are complete. */
export async function answerBatch(options: {
  readonly era: LegacyProtocol
  readonly session: Session
  readonly batch: Batch
  readonly outlet: ResponseChannel
  readonly caller: Caller
  readonly agentResolved?: boolean
  /** Called for each message that violates the protocol. */
  malformed(fault: string): void
}): Promise<readonly Buffer[]> {
  const { era, session, batch, outlet, caller } = options
  const parts: ResponseChannel[] = []
  outlet.owner = {
    cancel() {
      for (const { owner } of parts) owner?.cancel()
    },
  }
  const answers = batch.map((inbound) => {
    if (inbound.kind === 'invalid') {
      const { id, code, message } = inbound
      options.malformed(message)
      return errorBytes(id, { code, message })
    }
    if (inbound.kind === 'response') {
      const ambiguous = session.clientRequests.settle(inbound)
      if (ambiguous !== undefined) options.malformed(ambiguous)
    } else if (inbound.kind === 'notification') era.notification(session, inbound)
    else {
      const { promise: abandoned, resolve } = Promise.withResolvers<undefined>()
      const part: ResponseChannel = {
        owner: undefined,
        send: (message) => outlet.send(message),
        abandon: () => resolve(undefined),
      }
      parts.push(part)
      const answered = era
        .request(session, inbound, part, caller, options.agentResolved)
        .then((answer) => answer && joined(answer.message))
      return Promise.race([answered, abandoned])
    }
    return undefined
  })
  return (await Promise.all(answers)).filter((answer) => answer !== undefined)
}

export function batchBytes(answers: readonly Buffer[]): Buffer {
  const pieces = answers.flatMap((answer, index) => [index === 0 ? open : comma, answer])
  return Buffer.concat([...pieces, close])
}

const open = Buffer.from('[')
const comma = Buffer.from(',')
const close = Buffer.from(']')

import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Chat, ChatEvent, ChatRequest } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import type { Budget } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { readTraceContext } from '../../core/trace-context.ts'
import { type AuthIdentity, agentFor, agentOfRequest } from '../auth/identity.ts'
import { nonInteractivePeer } from '../calls/operations.ts'
import { HttpError, toHttpError } from '../errors.ts'
import type { RequestBodies } from '../http/bodies.ts'
import { sendJson } from '../http/response.ts'
import { abortOnClose, dropWhenStalled } from '../http/sse-stream.ts'
import { selectModel, streamAnswer } from './chat.ts'
import { errorBody } from './errors.ts'
import { readRequest } from './request.ts'
import { completionOf, createChunks } from './response.ts'

export interface CompletionsOptions {
  /** The chat for the current configuration; undefined if no model is configured. */
  chat(): Chat | undefined
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly bodies: RequestBodies
  /** Whether calls are traced. Trace headers are read only if this returns true. */
  traced?(): boolean
  /** The answers in progress. Each keeps a conversation in memory for minutes. */
  readonly answers: Budget
  readonly clock: Clock
  readonly log: Log
}

/** Handles POST /v1/chat/completions. Rejects with the error to send. */
export function createCompletions(options: CompletionsOptions) {
  const { access, answers, clock, log, traced } = options

  const take = (principal: string, response: ServerResponse) => {
    if (answers.take(principal)) throw tooMany(answers.usedBy(principal))
    response.once('close', () => answers.give(principal))
  }

  const callerOf = (request: IncomingMessage, identity: AuthIdentity, named: string | undefined): Caller => {
    const from = { ...identity, address: request.socket.remoteAddress }
    const asked = named ?? agentOfRequest(request)
    const agent = agentFor(access, from, asked)
    // There are no sessions here, so all chats of a principal share one.
    return { ...from, agent, asked, session: `chat ${identity.principal}`, capabilities: {} }
  }

  return async (request: IncomingMessage, response: ServerResponse, identity: AuthIdentity): Promise<void> => {
    take(identity.principal, response)
    const signal = abortOnClose(response)
    const { asked, includeUsage, agent } = readRequest(await options.bodies.read({ request, response, identity }))
    const { chat, model } = selectModel(options.chat(), asked.model)
    const caller = callerOf(request, identity, agent)
    const trace = traced?.() ? readTraceContext(request.headers) : undefined
    const id = `chatcmpl-${randomUUID().slice(19)}`
    const whole: ChatRequest = { ...asked, id, model, caller, signal, peer: nonInteractivePeer, trace }
    const heading = { id, created: Math.floor(clock.now() / 1000), model }
    // Set the headers now: OpenAI clients read X-Request-Id even if the request fails.
    response.setHeader('Toolway-Chat', id).setHeader('X-Request-Id', id)
    const events = noRetryAfterCalls(chat.answer(whole), response)
    if (asked.stream) {
      const chunks = createChunks(heading, includeUsage)
      await streamAnswer(events, {
        response,
        opening: [chunks.opening()],
        encode: chunks.of,
        failure: (thrown) => errorBody(toHttpError(thrown, log)),
        clock,
      })
      return
    }
    const completion = await completionOf(events, heading)
    if (response.destroyed) return
    sendJson(response, completion)
    dropWhenStalled(response)
  }
}

const tooMany = (own: number) =>
  HttpError.of('OVERLOADED', `Too many answers are in progress (${own} of them are yours): try again in a moment.`, {
    retryAfterMs: 5_000,
  })

/** Tells OpenAI clients not to retry after a tool call: an automatic retry would run the tool again. */
async function* noRetryAfterCalls(events: AsyncIterable<ChatEvent>, response: ServerResponse) {
  for await (const event of events) {
    if (event.kind === 'call' && !response.headersSent) response.setHeader('X-Should-Retry', 'false')
    yield event
  }
}

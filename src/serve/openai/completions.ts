import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Chat, ChatEvent, ChatRequest } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { readTraceContext } from '../../core/trace-context.ts'
import { agentFor, agentOfRequest } from '../auth/agent.ts'
import type { AuthIdentity } from '../auth/identity.ts'
import { nonInteractivePeer } from '../calls/request-peer.ts'
import { HttpError, toHttpError } from '../errors.ts'
import type { BodyReader } from '../http/bodies.ts'
import { abortOnClose, dropWhenStalled } from '../http/sse-stream.ts'
import { selectModel, streamAnswer } from './chat.ts'
import { errorBody } from './errors.ts'
import { readRequest } from './request.ts'
import { completionOf, createChunks } from './response.ts'

/** Answers POST /v1/chat/completions to somebody who was let in; rejects where there is nothing to answer with. */
export type Completions = (request: IncomingMessage, response: ServerResponse, identity: AuthIdentity) => Promise<void>

export interface CompletionsOptions {
  /** The chat of the present configuration; undefined where it names no model. */
  chat(): Chat | undefined
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly bodies: BodyReader
  /** Whether calls are traced: then headers count that tell of a place in a trace. */
  traced?(): boolean
  /** Answers that may be under way at a time. */
  readonly limit?: number
  readonly clock: Clock
  readonly log: Log
}

/** An answer holds a conversation in memory for minutes: more at a time are sent away. */
const maxAnswers = 256

/** One of so many parts of them is all that one principal may have: with half, nobody can shut out the others. */
const parts = 2

export function createCompletions(options: CompletionsOptions): Completions {
  const { access, clock, log, traced, limit = maxAnswers } = options
  const share = Math.ceil(limit / parts)
  /** Of each principal. */
  const held = new Map<string, number>()
  let underWay = 0

  /** Takes a place until the answer is over. */
  const take = (principal: string, response: ServerResponse) => {
    const own = held.get(principal) ?? 0
    if (underWay >= limit || own >= share) throw tooMany(underWay >= limit ? underWay : own)
    underWay++
    held.set(principal, own + 1)
    response.once('close', () => {
      underWay--
      const left = (held.get(principal) ?? 1) - 1
      if (left === 0) held.delete(principal)
      else held.set(principal, left)
    })
  }

  const callerOf = (request: IncomingMessage, identity: AuthIdentity, named: string | undefined): Caller => {
    const { remoteAddress } = request.socket
    const from = { ...identity, ...(remoteAddress !== undefined && { address: remoteAddress }) }
    const asked = named ?? agentOfRequest(request)
    const agent = agentFor(access, from, asked)
    // There are no sessions here: what servers keep for a caller is kept for whoever comes as the same agent.
    const session = `chat ${identity.principal} ${agent}`
    return { ...from, agent, ...(asked !== undefined && { asked }), session, capabilities: {} }
  }

  return async (request, response, identity) => {
    take(identity.principal, response)
    const signal = abortOnClose(response)
    const { asked, includeUsage, agent } = readRequest(await options.bodies.read({ request, response, identity }))
    const { chat, model } = selectModel(options.chat(), asked.model)
    const caller = callerOf(request, identity, agent)
    const trace = traced?.() ? readTraceContext(request.headers) : undefined
    const id = `chatcmpl-${randomUUID().slice(19)}`
    const whole: ChatRequest = {
      ...asked,
      id,
      model,
      caller,
      signal,
      peer: nonInteractivePeer,
      ...(trace && { trace }),
    }
    const heading = { id, created: Math.floor(clock.now() / 1000), model }
    // The second is where the clients of OpenAI look for the id of what they asked for, also when it fails.
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
    const body = Buffer.from(JSON.stringify(await completionOf(events, heading)))
    if (response.destroyed) return
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
    dropWhenStalled(response)
  }
}

const tooMany = (already: number) =>
  HttpError.of('OVERLOADED', `${already} answers are under way already: try again in a moment.`, {
    retryAfterMs: 5_000,
  })

/** Clients ask again by themselves where a server failed. Once a tool has run, that is for people to decide. */
async function* noRetryAfterCalls(events: AsyncIterable<ChatEvent>, response: ServerResponse) {
  for await (const event of events) {
    if (event.kind === 'call' && !response.headersSent) response.setHeader('X-Should-Retry', 'false')
    yield event
  }
}

import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { AmbiguousMember, definedBytes, type Scope } from '../../wire/check-members.ts'
import { answers, errorMembers, type MemberRules } from '../../wire/defined-members.ts'
import { notificationBytes, requestBytes } from '../../wire/message.ts'
import type { InboundResponse } from '../inbound-message.ts'

export type PendingClientRequests = ReturnType<typeof createPendingClientRequests>

interface Waiting {
  readonly method: string
  resolve(result: Json): void
  reject(error: Error): void
}

const maxWaiting = fixedLimits.clientQuestions.value

/** The unanswered requests to one client. They are kept per session, so no client can answer another's requests. */
export function createPendingClientRequests(
  scope: Scope,
  { principal, questions, log }: { readonly principal: string; readonly questions: Budget; readonly log: Log },
) {
  const waiting = new Map<string, Waiting>()
  let count = 0

  return {
    /** Sends a request. Rejects with a ServerError if the client returns an error, otherwise with a ToolwayError. */
    ask(send: (message: Buffer) => boolean, method: string, params: Json, signal: AbortSignal): Promise<Json> {
      if (signal.aborted) return Promise.reject(callEnded(method))
      if (waiting.size >= maxWaiting) {
        const sentence = `The client already has ${maxWaiting} unanswered requests: try again when it has answered some.`
        return Promise.reject(new ToolwayError('OVERLOADED', sentence))
      }
      try {
        questions.claim(principal)
      } catch (error) {
        return Promise.reject(error)
      }
      const id = `ask-${++count}`
      return new Promise<Json>((resolve, reject) => {
        const over = () => {
          if (waiting.delete(id)) questions.give(principal)
          signal.removeEventListener('abort', abort)
        }
        const abort = () => {
          over()
          send(notificationBytes('notifications/cancelled', Json.of({ requestId: id })))
          reject(callEnded(method))
        }
        waiting.set(id, {
          method,
          resolve(result) {
            over()
            resolve(result)
          },
          reject(error) {
            over()
            reject(error)
          },
        })
        signal.addEventListener('abort', abort)
        if (!send(requestBytes(id, method, params))) waiting.get(id)?.reject(unreachable(method))
      })
    },
    /** Passes a client's response to the waiting call. An ambiguous response is rejected; the reason is returned. */
    settle({ id, result, error }: InboundResponse): string | undefined {
      // All ids that the gateway sends are strings, so a numeric id is unknown.
      const found = typeof id === 'string' ? waiting.get(id) : undefined
      if (found === undefined) return undefined
      const { method } = found
      const leftOut: string[] = []
      try {
        if (result !== undefined) {
          found.resolve(Json.raw(definedBytes(result.bytes, answers[method] ?? emptyAnswer, scope, leftOut)))
        } else if (error !== undefined) {
          found.reject(new ServerError(Json.raw(definedBytes(error.bytes, errorMembers, scope, leftOut))))
        }
      } catch (thrown) {
        if (!(thrown instanceof AmbiguousMember)) throw thrown
        found.reject(new ToolwayError('INVALID_ARGUMENTS', `The client's response to ${method}: ${thrown.message}`))
        return thrown.message
      }
      if (leftOut.length > 0) {
        log.debug({ method, members: leftOut.slice(0, 10) }, "dropped unknown members of a client's response")
      }
      return undefined
    },
  }
}

const emptyAnswer: MemberRules = { members: {} }

export const callEnded = (method: string) =>
  new ToolwayError('CANCELLED', `The call that requested ${method} from its client has ended.`)

const unreachable = (method: string) =>
  new ToolwayError(
    'CANCELLED',
    `Cannot send ${method} to the client: it has disconnected, or does not accept an event stream.`,
  )

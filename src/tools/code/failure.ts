import { type ErrorCode, ServerError, ToolwayError } from '../../core/errors.ts'
import { HostRefusal } from '../../core/executor.ts'
import { plainText } from './declarations/plain-text.ts'
import type { CallStatus } from './ledger.ts'

/** Why a call has failed, as its program and its record are told. */
export interface Failure {
  readonly status: CallStatus
  readonly refusal: HostRefusal
}

const maxMessage = 4000
const maxCode = 100

export function failureOf(thrown: unknown, sent: boolean): Failure {
  if (thrown instanceof ServerError) {
    // As the server has sent it: either may be anything.
    const { code, message } = thrown.error.value
    return { status: 'error', refusal: refusalOf(plainText(JSON.stringify(code), maxCode), message) }
  }
  const error = ToolwayError.from(thrown)
  return { status: sent && mayHaveRun(error) ? 'unknown' : 'refused', refusal: refusalOf(error.code, error.message) }
}

export const refusalOf = (code: string, message: unknown): HostRefusal =>
  new HostRefusal(code, plainText(message, maxMessage) || 'It was not said why.')

/** Refused by these before anything is sent to anybody. */
const beforehand: readonly ErrorCode[] = ['INVALID_ARGUMENTS', 'SERVER_UNHEALTHY', 'CIRCUIT_OPEN', 'OVERLOADED']

const mayHaveRun = ({ code, kind, details }: ToolwayError): boolean =>
  !(kind.denial || kind.malformed || details.unsent || beforehand.includes(code))

import { ToolwayError } from '../../core/errors.ts'
import { ProxyFailure } from '../../outbound/proxy-failure.ts'
import { EventTooLong } from './event-stream.ts'
import type { Said } from './said.ts'

/** Where a model is, for sentences about it. */
export interface Place {
  /** Its name in the configuration. */
  readonly name: string
  readonly origin: string
}

/** The end of many sentences. */
const look = ({ name, origin }: Place): string => `Check models.${name} and the log of the server at ${origin}.`

/** The server refused a request, and said why. */
export interface Refusal {
  readonly status: number
  readonly said: Said
  readonly retryAfterMs: number | undefined
  /** It came inside an answer whose own status promised better. */
  readonly inside?: true
}

/** What an answer means that is not the one that was asked for. */
export function refused(place: Place, { status, said, retryAfterMs, inside }: Refusal): ToolwayError {
  const { name } = place
  const http = inside ? `error ${status}` : `HTTP ${status}`
  const quote = said.message === '' ? '' : ` It says: ${said.message}`
  if (isBusy(status)) {
    const when = retryAfterMs === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterMs / 1000)} s.`
    const details = retryAfterMs === undefined ? {} : { retryAfterMs }
    return new ToolwayError('OVERLOADED', `The server of the model ${name} is too busy (${http}). ${when}`, details)
  }
  // What it says about a key may hold a part of it.
  if (status === 401 || status === 403) {
    return failed(place, `refuses our key (${http}). Check models.${name}.apiKey.`)
  }
  if (status === 404) {
    return failed(place, `knows no such model or path (${http}). Check models.${name}.baseUrl and model.${quote}`)
  }
  if (status >= 300 && status < 400) {
    return failed(place, `redirects, which is not followed. Put the final address into models.${name}.baseUrl.`)
  }
  if (status >= 400 && status < 500) {
    const advice = 'Send less, or something else.'
    return new ToolwayError(
      'INVALID_ARGUMENTS',
      `The server of the model ${name} refused the request (${http}). ${advice}${quote}`,
    )
  }
  return failed(place, `failed (${http}). ${look(place)}${quote}`)
}

export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529

/** An answer that has nothing to do with models. */
export const noAnswer = (place: Place, what: string): ToolwayError =>
  failed(place, `answered with ${what} instead of a completion. Check models.${place.name}.baseUrl.`)

export const tooLong = (place: Place, most: number): ToolwayError =>
  failed(place, `sent more than ${Math.round(most / 1024)} KiB in one answer. ${look(place)}`)

/** The server reported an error in the middle of its answer. */
export const brokenStream = (place: Place, said: Said): ToolwayError =>
  failed(place, `gave up in the middle of its answer. ${look(place)} It says: ${said.message}`)

/** Something went wrong with the connection, before the answer or in it. */
export function lost(place: Place, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (thrown instanceof EventTooLong) return failed(place, `sent an event that is too long. ${look(place)}`)
  if (thrown instanceof ProxyFailure) return failed(place, `cannot be reached: ${thrown.message}`, thrown)
  const why = reason(thrown)
  if (begun) return failed(place, `broke off in the middle of its answer (${why}). Try again.`, thrown)
  return failed(
    place,
    `cannot be reached (${why}). Check that it runs and that models.${place.name}.baseUrl is right.`,
    thrown,
  )
}

/** `key`: which of the model's timeouts is over. */
export const tooSlow = (place: Place, what: string, ms: number, key: 'total' | 'step' | 'chunk'): ToolwayError =>
  new ToolwayError(
    'TIMEOUT',
    `The server of the model ${place.name} ${what} within ${ms / 1000} s (models.${place.name}.timeouts.${key}). Try again, or ask for less.`,
  )

function failed({ name }: Place, what: string, cause?: unknown): ToolwayError {
  return new ToolwayError(
    'SERVER_UNAVAILABLE',
    `The server of the model ${name} ${what}`,
    cause === undefined ? {} : { cause },
  )
}

/** A code such as ECONNREFUSED; a name with several addresses fails with one error for each. */
function reason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}

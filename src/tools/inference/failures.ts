import { ToolwayError } from '../../core/errors.ts'
import { ProxyFailure } from '../../outbound/proxy-failure.ts'
import { withoutHidden } from '../hidden-characters.ts'
import type { Task } from './choose.ts'

/** Whom a sentence is about: a model by its name in the configuration, and what it was wanted for. */
export interface Place {
  readonly name: string
  readonly task: Task
}

export interface Said {
  readonly text: string
  /** Blotted out, wherever they stand. */
  readonly secrets: readonly string[]
  readonly retryAfter: string
}

/** What an answer means that is not the one that was asked for. */
export function refused(place: Place, status: number, said: Said): ToolwayError {
  const { name, task } = place
  const http = `HTTP ${status}`
  // What it says about a key may hold a part of it.
  if (status === 401 || status === 403) return failed(place, `refuses our key (${http}). Check models.${name}.apiKey.`)
  const quote = quoteOf(said)
  if (status === 404 || status === 405) {
    return failed(place, `does not know how (${http}). Name a model that does in native.inference.${task}.${quote}`)
  }
  if (status === 429 || status === 503) {
    const retryAfterMs = /^\d{1,6}$/.test(said.retryAfter) ? Number(said.retryAfter) * 1000 : undefined
    const details = retryAfterMs === undefined ? {} : { retryAfterMs }
    return new ToolwayError(
      'OVERLOADED',
      `The server of the model ${name} is too busy (${http}). Try again later.`,
      details,
    )
  }
  if (status >= 300 && status < 400) {
    return failed(place, `redirects, which is not followed. Put the final address into models.${name}.baseUrl.`)
  }
  if (status >= 500) return failed(place, `failed (${http}). Check its log.${quote}`)
  const sentence = `The server of the model ${name} refused the request (${http}). Change what you ask for.${quote}`
  return new ToolwayError('INVALID_ARGUMENTS', sentence)
}

/** Something else than what was asked for. */
export const noAnswer = (place: Place, wanted: string): ToolwayError =>
  failed(place, `answered with something else than ${wanted}. Check native.inference.${place.task}.`)

export const tooLarge = (place: Place, most: number): ToolwayError =>
  failed(place, `sent more than ${most} bytes. Ask for less; the operator can raise native.inference.maxBytes.`)

/** The connection failed, before the answer or in it. */
export function lost(place: Place, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ProxyFailure) return failed(place, `cannot be reached: ${thrown.message}`, thrown)
  const why = reasonOf(thrown)
  if (begun) return failed(place, `broke off in the middle of its answer (${why}). Try again.`, thrown)
  const advice = `Check that it runs and that models.${place.name}.baseUrl is right.`
  return failed(place, `cannot be reached (${why}). ${advice}`, thrown)
}

const failed = ({ name }: Place, what: string, cause?: unknown) =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    `The server of the model ${name} ${what}`,
    cause === undefined ? {} : { cause },
  )

function reasonOf(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}

/** The server's own words, on one line. */
function quoteOf({ text, secrets }: Said): string {
  const whole = secrets
    .filter((secret) => secret.length > 3)
    .reduce((left, secret) => left.replaceAll(secret, '***'), text)
  const words = withoutHidden(messageIn(whole)).replace(/\s+/g, ' ').trim().slice(0, 300)
  return words === '' ? '' : ` It says: ${words}`
}

function messageIn(text: string): string {
  try {
    const { error, detail, message } = JSON.parse(text) as Record<string, unknown>
    const told = (error as { message?: unknown } | undefined)?.message ?? error ?? detail ?? message
    return typeof told === 'string' ? told : text
  } catch {
    return text
  }
}

import { type Answer, textOf } from './exchange.ts'
import type { Refusal } from './failures.ts'
import { type Dispensable, dispensable } from './profile.ts'
import { waitAskedMs } from './retry-after.ts'
import { type Said, saidIn } from './said.ts'

/** Of an answer that refuses, only a sentence is of interest. */
const maxBytes = 64 * 1024

/** Reads why a request was refused. */
export async function refusalOf(answer: Answer, secrets: readonly string[], now: number): Promise<Refusal> {
  const text = await textOf(answer.chunks, maxBytes)
  return { status: answer.status, said: saidIn(text ?? '', secrets), retryAfterMs: waitAskedMs(answer.header, now) }
}

/** An error that came in the place of an answer, although the status promised one. */
export class RefusedInside extends Error {
  override readonly name = 'RefusedInside'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super('refused')
    this.refusal = refusal
  }
}

/** The refusal in an object of an answer, if it is one. */
export function refusalIn(object: unknown, secrets: readonly string[]): Refusal | undefined {
  if (typeof object !== 'object' || object === null || !('error' in object) || !object.error) return undefined
  const said = saidIn(JSON.stringify(object), secrets)
  const status = Number(said.code)
  return { status: status >= 400 && status < 600 ? status : 500, said, retryAfterMs: undefined, inside: true }
}

const isTooMuch =
  /context[ _](?:length|window|size)|too (?:long|many tokens)|maximum (?:context|prompt|number of tokens)/i
const isAboutForm = /grammar|schema|response_format|jinja|tool|structured/i

/** A number that is out of bounds is the caller's mistake; the next one may be right. */
const isOutOfBounds =
  /too (?:large|big|high|small|low)|must be|should be|at (?:most|least)|(?:less|greater|larger) than|out of range|between/i
const isUnsupported = /unsupported|not supported|does not support|not permitted|unknown|unrecognized|unexpected/i

/** Whether one of the fields that every form has was given a value that it cannot have. */
function isValue({ code, message }: Said): boolean {
  const about = `${code} ${message}`
  return isOutOfBounds.test(about) && !isUnsupported.test(about) && dispensable.some((field) => about.includes(field))
}

/** Whether the same request may be taken in a weaker form: it was refused, and not for its length or its numbers. */
export function mayBeForm({ status, said }: Refusal): boolean {
  if (isTooMuch.test(`${said.code} ${said.message}`) || isValue(said)) return false
  if (status === 500) return isAboutForm.test(said.message)
  return status === 400 || status === 422 || status === 501
}

/** The field that the server does not want, if it is one that nobody needs. */
export function dislikedField({ status, said }: Refusal, body: object): Dispensable | undefined {
  if ((status !== 400 && status !== 422) || isValue(said)) return undefined
  return dispensable.find((field) => field in body && (said.param === field || said.message.includes(field)))
}

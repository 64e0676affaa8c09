import { Refusal } from '../refusal.ts'

const challenge = 'Bearer realm="toolway"'

/** Nothing was shown: by its standard, the challenge then names no error. */
export const missing = (): Refusal =>
  refused(
    'This gateway needs a credential: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
    challenge,
  )

/** Something was shown that lets nobody in. The sentence says what to do and never repeats what was shown. */
export const wrong = (sentence: string): Refusal => refused(sentence, `${challenge}, error="invalid_token"`)

const refused = (sentence: string, header: string) =>
  Refusal.of('AUTH_REQUIRED', sentence, { headers: { 'WWW-Authenticate': header } })

/** Nobody can tell now whether the credential is good: that is not the caller's fault, and waiting helps. */
export const unverifiable = (retryAfterMs: number): Refusal => {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const sentence = `This gateway cannot check tokens now, because the identity provider's keys cannot be had: try again in ${seconds} s.`
  return Refusal.of('OVERLOADED', sentence, { retryAfterMs })
}

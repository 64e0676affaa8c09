/** When to come back, to end the sentence of a refusal with. */
export function callAgain(retryAfterMs: number): string {
  const seconds = Math.ceil(retryAfterMs / 1000)
  return `call again in ${seconds === 1 ? 'a second' : `${seconds} seconds`}`
}

/** A time limit as people write it. */
export const durationText = (ms: number): string =>
  ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.round(ms / 100) / 10} s`

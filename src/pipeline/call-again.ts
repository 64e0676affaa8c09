/** When to come back, to end the sentence of a refusal with. */
export function callAgain(retryAfterMs: number): string {
  const seconds = Math.ceil(retryAfterMs / 1000)
  return `call again in ${seconds === 1 ? 'a second' : `${seconds} seconds`}`
}

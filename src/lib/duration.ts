export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: hourMs, d: dayMs } as const

const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds from `500ms`, `30s`, `5m`, `1h` or `2d`; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = pattern.exec(text.trim()) ?? []
  return unit === undefined ? undefined : Math.round(Number(count) * durationUnits[unit as keyof typeof durationUnits])
}

/** The end of an error message, which tells a refused caller when to try again. */
export function callAgain(retryAfterMs: number): string {
  const seconds = Math.ceil(retryAfterMs / 1000)
  return `try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}`
}

export const durationText = (ms: number): string =>
  ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.round(ms / 100) / 10} s`

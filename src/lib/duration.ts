/** Milliseconds per unit. */
export const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds from `500ms`, `30s`, `5m`, `1h` or `2d`; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = pattern.exec(text.trim()) ?? []
  return unit === undefined ? undefined : Math.round(Number(count) * durationUnits[unit as keyof typeof durationUnits])
}

import { InvalidArgumentError } from 'commander'

const factors: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Milliseconds from `500ms`, `30s`, `5m` or `1h`, as in the configuration. */
export function durationMs(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text.trim()) ?? []
  if (number === undefined || unit === undefined) throw new InvalidArgumentError('Write it like 500ms, 30s, 5m or 1h.')
  const ms = Number(number) * (factors[unit] as number)
  if (ms < 1 || ms > 2 ** 31 - 1) throw new InvalidArgumentError('It must be between 1ms and 24 days.')
  return Math.round(ms)
}

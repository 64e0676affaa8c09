import { InvalidArgumentError } from 'commander'

const factors: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const longest = 3_650

/** Milliseconds from `30m`, `12h` or `90d`: for what outlives a process. */
export function lifetimeMs(text: string): number {
  const [, number, unit] = /^(\d+)(m|h|d)$/.exec(text.trim()) ?? []
  if (number === undefined || unit === undefined) throw new InvalidArgumentError('Write it like 30m, 12h or 90d.')
  const ms = Number(number) * (factors[unit] as number)
  if (ms > 0 && ms <= longest * (factors.d as number)) return ms
  throw new InvalidArgumentError(`It must be between 1m and ${longest}d.`)
}

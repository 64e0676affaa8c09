import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../lib/duration.ts'

/** Milliseconds from `500ms`, `30s`, `5m` or `1h`, as in the configuration. */
export function durationMs(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('Write it like 500ms, 30s, 5m or 1h.')
  if (ms < 1 || ms > 2 ** 31 - 1) throw new InvalidArgumentError('It must be between 1ms and 24 days.')
  return ms
}

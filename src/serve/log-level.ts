import { type LogLevel, logLevels } from '../core/capabilities.ts'
import type { Json } from '../core/json.ts'

export const isLogLevel = (value: unknown): value is LogLevel => (logLevels as readonly unknown[]).includes(value)

/** Whether a log message is grave enough for whoever asked for this level; one of an unknown gravity always is. */
export function isWanted(from: LogLevel | undefined, message: Json): boolean {
  if (from === undefined) return false
  if (from === logLevels[0]) return true
  const { level } = message.value as { readonly level?: unknown }
  return !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(from)
}

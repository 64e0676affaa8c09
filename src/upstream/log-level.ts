import { type LogLevel, logLevels } from '../core/capabilities.ts'
import type { OpenLine } from './introduction.ts'

const asked = new WeakMap<OpenLine, LogLevel>()

/**
 * Asks a server of the era with sessions for log messages from this level on. The level holds for the whole line,
 * so it only ever goes down: whoever wants less hears less at the door.
 */
export async function wantLogs(open: OpenLine, level: LogLevel, signal: AbortSignal): Promise<void> {
  const { introduction, connection } = open
  if (introduction.era === 'modern' || introduction.capabilities.logging === undefined) return
  const current = asked.get(open)
  if (current !== undefined && logLevels.indexOf(current) <= logLevels.indexOf(level)) return
  asked.set(open, level)
  const params = Buffer.from(JSON.stringify({ level }))
  // A server that declares logging and knows no levels still logs.
  await connection.request({ method: 'logging/setLevel', params: () => params, signal }).catch(() => {})
}

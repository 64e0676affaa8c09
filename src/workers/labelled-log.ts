import type { Log } from '../core/log.ts'

/** A log whose lines all carry the same facts. */
export const labelledLog = (log: Log, facts: object): Log => ({
  debug: (more, message) => log.debug({ ...facts, ...more }, message),
  info: (more, message) => log.info({ ...facts, ...more }, message),
  warn: (more, message) => log.warn({ ...facts, ...more }, message),
  error: (more, message) => log.error({ ...facts, ...more }, message),
  isLevelEnabled: (level) => log.isLevelEnabled?.(level) ?? true,
})

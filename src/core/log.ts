/** A structured log. Each entry has fields and a one-sentence message. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
  /** Sets a function that redacts each line before it is written. Logs that are not stored need not support it. */
  conceal?(conceal: (line: string) => string): void
  /** Whether a level is logged. If this method is absent, all levels are. */
  isLevelEnabled?(level: string): boolean
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

export const labelledLog = (log: Log, facts: object): Log => ({
  debug: (more, message) => log.debug({ ...facts, ...more }, message),
  info: (more, message) => log.info({ ...facts, ...more }, message),
  warn: (more, message) => log.warn({ ...facts, ...more }, message),
  error: (more, message) => log.error({ ...facts, ...more }, message),
  isLevelEnabled: (level) => log.isLevelEnabled?.(level) ?? true,
})

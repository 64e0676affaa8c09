/** Structured log: fields first, then one sentence. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
  /** Sets a filter that redacts each line before it is written; optional for logs that are not stored. */
  conceal?(conceal: (line: string) => string): void
  /** Without it, all levels are enabled. */
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

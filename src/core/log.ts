/** The log as features see it: facts first, then one sentence. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
  /** Has each line go through this before it is written; a log that is not written down may do without. */
  conceal?(conceal: (line: string) => string): void
  /** Whether lines of a level go anywhere; a log that does not say takes all of them. */
  isLevelEnabled?(level: string): boolean
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A log whose lines all carry the same facts. */
export const labelledLog = (log: Log, facts: object): Log => ({
  debug: (more, message) => log.debug({ ...facts, ...more }, message),
  info: (more, message) => log.info({ ...facts, ...more }, message),
  warn: (more, message) => log.warn({ ...facts, ...more }, message),
  error: (more, message) => log.error({ ...facts, ...more }, message),
  isLevelEnabled: (level) => log.isLevelEnabled?.(level) ?? true,
})

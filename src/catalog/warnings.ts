import type { Log } from '../core/log.ts'

export type Warn = (facts: object, message: string) => void

/** Names are given again on every change of any server; each warning is worth one line. */
export function warnOnce(log: Log): Warn {
  const said = new Set<string>()
  return (facts, message) => {
    const key = message + JSON.stringify(facts)
    if (said.has(key)) return
    if (said.size >= 10_000) said.clear()
    said.add(key)
    log.warn(facts, message)
  }
}

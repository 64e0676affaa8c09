import type { Call } from '../core/call.ts'
import type { Log } from '../core/log.ts'
import type { Observed, Observer } from '../core/observer.ts'

/**
 * One line in the log for every call, however it ended; names are redacted, since any may hold a secret (B6). Only
 * for whoever logs at that level: nobody makes up lines that are thrown away.
 */
export const callLog = (log: Log, redact: (text: string) => string): Observer => ({
  ended(observed) {
    const { kind, code } = observed.outcome
    if (kind === 'answered') log.debug(facts(observed, redact), 'call answered')
    else if (kind === 'tool_error') log.debug(facts(observed, redact), 'call answered with a tool error')
    else log.debug({ ...facts(observed, redact), error: code }, 'call failed')
  },
})

/** Whether a log wants a line for each call. */
export const logsCalls = (log: Log): boolean => log.isLevelEnabled?.('debug') ?? true

const facts = ({ call, ms }: Observed, redact: (text: string) => string) => ({
  ...who(call, redact),
  ms: Math.round(ms * 100) / 100,
})

const who = ({ id, parent, caller, entry }: Call, redact: (text: string) => string) => ({
  call: id,
  ...(parent && { parent }),
  agent: redact(caller.agent),
  server: redact(entry.server),
  [entry.kind]: redact(entry.name),
})

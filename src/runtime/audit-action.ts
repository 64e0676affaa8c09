import { randomUUID } from 'node:crypto'
import type { Audit, AuditBegin } from '../core/audit.ts'
import { type AuditedEnding, endOfError } from '../core/outcome.ts'

interface AuditedAction extends Omit<AuditBegin, 'call' | 'write'> {
  readonly rule: string
}

/** Runs an action that is not a call, and audits it like a call (F11). Rejects if the action cannot be recorded. */
export async function auditAction<T>(
  audit: Audit,
  { rule, arguments: args, ...action }: AuditedAction,
  work: () => Promise<T>,
): Promise<T> {
  const subject = { call: randomUUID(), ...action, write: true }
  const start = performance.now()
  const end = (ending: AuditedEnding) =>
    audit.end({ ...subject, ...ending, latency_ms: Math.round((performance.now() - start) * 100) / 100 })
  await audit.begin({ ...subject, arguments: args })
  try {
    const result = await work()
    await end({ decision: 'ALLOW', rule, is_error: false })
    return result
  } catch (thrown) {
    await end(endOfError(thrown).ending)
    throw thrown
  }
}

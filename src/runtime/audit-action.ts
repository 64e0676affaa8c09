import { randomUUID } from 'node:crypto'
import type { Audit, AuditBegin, AuditEnd } from '../core/audit.ts'

interface AuditedAction extends Omit<AuditBegin, 'call' | 'write'> {
  readonly rule: string
}

type Outcome = Pick<AuditEnd, 'decision' | 'rule' | 'reason' | 'code' | 'is_error'>

/** Runs an action that is not a call, and audits it like a call (F11). Rejects if the action cannot be recorded. */
export async function auditAction<T>(
  audit: Audit,
  { rule, arguments: args, ...action }: AuditedAction,
  work: () => Promise<T>,
  failure: (thrown: unknown) => Pick<AuditEnd, 'code' | 'reason'>,
): Promise<T> {
  const subject = { call: randomUUID(), ...action, write: true }
  const start = performance.now()
  const end = (outcome: Outcome) =>
    audit.end({ ...subject, ...outcome, latency_ms: Math.round((performance.now() - start) * 100) / 100 })
  await audit.begin({ ...subject, arguments: args })
  try {
    const result = await work()
    await end({ decision: 'ALLOW', rule, is_error: false })
    return result
  } catch (thrown) {
    await end({ decision: 'ERROR', ...failure(thrown), is_error: true })
    throw thrown
  }
}

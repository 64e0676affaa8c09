import { randomUUID } from 'node:crypto'
import type { Audit } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'

/** What an operator did, in the words of the audit log. */
export interface Deed {
  readonly operation: string
  readonly server?: string
}

/** Does something that an operator asked for, and writes down who it was and how it went, as for every call (F11). */
export async function recorded<T>(audit: Audit, caller: Caller, deed: Deed, work: () => Promise<T>): Promise<T> {
  const { agent, principal, authenticated, address } = caller
  const subject = {
    call: randomUUID(),
    agent,
    principal,
    ...(!authenticated && { anonymous: true as const }),
    ...(address !== undefined && { address }),
    ...deed,
    write: true,
  }
  const start = performance.now()
  const took = () => Math.round((performance.now() - start) * 100) / 100
  await audit.begin(subject)
  try {
    const result = await work()
    await audit.end({ ...subject, decision: 'ALLOW', rule: 'admin', is_error: false, latency_ms: took() })
    return result
  } catch (thrown) {
    const { code } = ToolwayError.from(thrown)
    const failed = { decision: 'ERROR', code, reason: code.toLowerCase(), is_error: true } as const
    await audit.end({ ...subject, ...failed, latency_ms: took() })
    throw thrown
  }
}

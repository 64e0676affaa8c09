import type { ConfigSource } from '../config/locate.ts'
import type { Audit, AuditBegin } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import { auditAction } from '../runtime/audit-events.ts'
import type { GatewayParts } from '../runtime/gateway.ts'
import type { ProcessState } from '../runtime/process-state.ts'
import type { Inbox } from './inbox/inbox.ts'

export interface AdminContext extends ProcessState, Pick<GatewayParts, 'access' | 'cluster' | 'current' | 'why'> {
  /** Where the configuration is read from; undefined if the gateway was started by a program. */
  readonly source?: ConfigSource | undefined
  /** This worker's number and the number of workers; undefined if there is only one process. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly inbox: Inbox
  auditKey(): Promise<string>
  sessions(): number
  /** The URL of the MCP endpoint. */
  endpoint(): string
  readonly version: string
}

/** Runs an operator's action and records it in the audit log (F11). */
export function auditOperation<T>(
  audit: Audit,
  { agent, principal, authenticated, address }: Caller,
  action: Pick<AuditBegin, 'operation' | 'server' | 'tool' | 'arguments'>,
  work: () => Promise<T>,
): Promise<T> {
  const subject = { agent, principal, anonymous: authenticated ? undefined : (true as const), address }
  return auditAction(audit, { ...subject, ...action, rule: 'admin' }, work)
}

import type { ConfigSource } from '../config/locate.ts'
import type { Audit, AuditBegin } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { auditAction } from '../runtime/audit-events.ts'
import type { GatewayParts } from '../runtime/gateway.ts'
import type { OAuth } from '../runtime/oauth-sign-in.ts'
import type { ProcessState } from '../runtime/process-state.ts'
import type { ReloadHistory } from '../runtime/reload.ts'
import type { RecentCalls } from '../telemetry/calls/call-records.ts'
import type { Figures, Series, Stats } from './contract.ts'
import type { Inbox } from './inbox/inbox.ts'

export interface CallCounters {
  of(by: Stats['by'], name: string): Figures
  recent(ms: number): Figures
  table(by: Stats['by']): Stats
  series(from: number, to: number): Series
}

export interface AdminContext
  extends Pick<
      ProcessState,
      | 'archive'
      | 'audit'
      | 'breakers'
      | 'budgets'
      | 'bulkhead'
      | 'cache'
      | 'captures'
      | 'history'
      | 'keyUsage'
      | 'pubSub'
      | 'seal'
      | 'sharedApprovals'
      | 'startedAt'
    >,
    Pick<GatewayParts, 'access' | 'cluster' | 'current' | 'why'> {
  readonly reload: {
    /** Reloads the configuration in all processes. Never rejects; a failure is recorded in the history. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  /** Where the configuration is read from; undefined if the gateway was started by a program. */
  readonly source?: ConfigSource | undefined
  /** This worker's number and the number of workers; undefined if there is only one process. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly oauth?: Pick<OAuth, 'authorize' | 'beginHere' | 'finishHere' | 'forget' | 'list'>
  readonly stats: CallCounters
  readonly calls: Pick<RecentCalls, 'list' | 'find' | 'subscribe'>
  readonly inbox: Inbox
  auditKey(): Promise<string>
  sessions(): number
  /** The URL of the MCP endpoint. */
  endpoint(): string
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

/** Runs an operator's action and records it in the audit log (F11). */
export function audited<T>(
  audit: Audit,
  { agent, principal, authenticated, address }: Caller,
  action: Pick<AuditBegin, 'operation' | 'server' | 'tool' | 'arguments'>,
  work: () => Promise<T>,
): Promise<T> {
  const subject = { agent, principal, anonymous: authenticated ? undefined : (true as const), address }
  return auditAction(audit, { ...subject, ...action, rule: 'admin' }, work)
}

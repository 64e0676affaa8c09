import type { Access } from '../../core/access.ts'
import type { Audit, AuditBegin } from '../../core/audit.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Why } from '../../policy/explanation.ts'
import type { Figures, Series, Stats } from '../../serve/admin/contract.ts'
import type { RecentCalls } from '../../telemetry/calls/call-records.ts'
import { auditAction } from '../audit-action.ts'
import type { Cluster } from '../cluster.ts'
import type { ConfigSource } from '../config-edit/config-file.ts'
import type { Generation } from '../generation.ts'
import type { OAuth } from '../oauth-sign-in.ts'
import type { ProcessState } from '../process-state.ts'
import type { ReloadHistory, ReloadStatus } from '../reload.ts'
import type { SharedApprovals } from '../shared-approvals.ts'
import type { Inbox } from './inbox.ts'

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
  > {
  readonly access: Access
  readonly oauth?: Pick<OAuth, 'authorize' | 'beginHere' | 'finishHere' | 'forget' | 'list'>
  current(): Generation
  readonly stats: CallCounters
  readonly sharedApprovals: SharedApprovals
  readonly calls: Pick<RecentCalls, 'list' | 'find' | 'subscribe'>
  readonly reload: {
    status(): ReloadStatus
    /** Reloads the configuration. Never rejects; a failure is recorded in the history. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  /** Actions that apply to all processes that serve this gateway. */
  readonly cluster: Pick<Cluster, 'control' | 'keysChanged'>
  /** Where the configuration is read from; undefined if the gateway was started by a program. */
  readonly source?: ConfigSource | undefined
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
  readonly inbox: Inbox
  auditKey(): Promise<string>
  sessions(): number
  /** The URL of the MCP endpoint. */
  endpoint(): string
  /** This worker's number and the number of workers; undefined if there is only one process. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly startedAt: number
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

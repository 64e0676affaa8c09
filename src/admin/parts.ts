import type { Access } from '../core/access.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Lasting } from '../lasting.ts'
import type { Why } from '../policy/explanation.ts'
import type { ReloadHistory } from '../reload/history.ts'
import type { ReloadStatus } from '../reload/reload.ts'
import type { Figures, Series, Stats } from '../serve/admin/contract.ts'
import type { OAuth } from '../sign-in.ts'
import type { RecentCalls } from '../telemetry/calls/recent.ts'
import type { World } from '../world/world.ts'

/** What is counted of calls. */
export interface Counted {
  of(by: Stats['by'], name: string): Figures
  recent(ms: number): Figures
  table(by: Stats['by']): Stats
  series(from: number, to: number): Series
}

/** All that the admin API is put together from. */
export interface AdminParts extends Pick<Lasting, 'archive' | 'audit' | 'breakers' | 'bulkhead' | 'cache'> {
  readonly access: Access
  /** Tokens for servers that want OAuth. */
  readonly oauth?: Pick<OAuth, 'beginHere' | 'finishHere'>
  /** What the present configuration has made. */
  present(): World
  readonly stats: Counted
  readonly calls: Pick<RecentCalls, 'list' | 'find' | 'subscribe'>
  readonly reload: {
    status(): ReloadStatus
    /** Never rejects: the history tells how it went. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
  /** The secret of the audit log, to check it with. */
  auditKey(): Promise<string>
  /** Conversations with clients that are open. */
  sessions(): number
  /** The URL of the MCP endpoint. */
  endpoint(): string
  /** Which worker this is, where several serve together. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly startedAt: number
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

import { randomUUID } from 'node:crypto'
import type { Access } from '../../core/access.ts'
import type { Audit } from '../../core/audit.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Why } from '../../policy/explanation.ts'
import type { Figures, Series, Stats } from '../../serve/admin/contract.ts'
import type { RecentCalls } from '../../telemetry/calls/call-records.ts'
import type { Generation } from '../generation.ts'
import type { OAuth } from '../oauth-sign-in.ts'
import type { ProcessState } from '../process-state.ts'
import type { ReloadHistory, ReloadStatus } from '../reload.ts'

export interface CallCounters {
  of(by: Stats['by'], name: string): Figures
  recent(ms: number): Figures
  table(by: Stats['by']): Stats
  series(from: number, to: number): Series
}

export interface AdminContext extends Pick<ProcessState, 'archive' | 'audit' | 'breakers' | 'bulkhead' | 'cache'> {
  readonly access: Access
  readonly oauth?: Pick<OAuth, 'beginHere' | 'finishHere'>
  current(): Generation
  readonly stats: CallCounters
  readonly calls: Pick<RecentCalls, 'list' | 'find' | 'subscribe'>
  readonly reload: {
    status(): ReloadStatus
    /** Never rejects: see the history. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
  auditKey(): Promise<string>
  sessions(): number
  /** The URL of the MCP endpoint. */
  endpoint(): string
  /** This worker, if there are several. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly startedAt: number
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

interface AdminAction {
  readonly operation: string
  readonly server?: string
}

/** Runs an operator's action and audits it like a call (F11). */
export async function audited<T>(
  audit: Audit,
  caller: Caller,
  action: AdminAction,
  work: () => Promise<T>,
): Promise<T> {
  const { agent, principal, authenticated, address } = caller
  const subject = {
    call: randomUUID(),
    agent,
    principal,
    ...(!authenticated && { anonymous: true as const }),
    ...(address !== undefined && { address }),
    ...action,
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

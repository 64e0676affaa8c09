import type { BreakerView, CallView, ChainView, ServerHealth, ToolView } from '../../../src/admin/contract.ts'
import type { StreamState } from '../api/live.ts'
import type { Status } from './status-badge.tsx'

export const healthStatuses: Readonly<Record<ServerHealth, Status>> = {
  healthy: { tone: 'ok', shape: 'dot', label: 'healthy' },
  degraded: { tone: 'warn', shape: 'triangle', label: 'degraded' },
  unhealthy: { tone: 'bad', shape: 'cross', label: 'unhealthy' },
  'needs-auth': { tone: 'warn', shape: 'barred', label: 'needs sign-in' },
  starting: { tone: 'info', shape: 'half', label: 'starting' },
  stale: { tone: 'quiet', shape: 'ring', label: 'stale' },
  disabled: { tone: 'quiet', shape: 'dash', label: 'disabled' },
}

/** Something that a server sent and that was shortened, left out or refused. */
export const findingStatus: Status = { tone: 'warn', shape: 'triangle', label: 'finding' }

export const outcomeStatuses: Readonly<Record<CallView['outcome'], Status>> = {
  running: { tone: 'info', shape: 'half', label: 'running' },
  answered: { tone: 'ok', shape: 'dot', label: 'answered' },
  tool_error: { tone: 'warn', shape: 'triangle', label: 'tool error' },
  denied: { tone: 'bad', shape: 'barred', label: 'denied' },
  failed: { tone: 'bad', shape: 'cross', label: 'failed' },
}

export const breakerStatuses: Readonly<Record<BreakerView, Status>> = {
  closed: { tone: 'ok', shape: 'dot', label: 'closed' },
  'half-open': { tone: 'warn', shape: 'half', label: 'half-open' },
  open: { tone: 'bad', shape: 'cross', label: 'open' },
}

export const pinStatuses: Readonly<Record<ToolView['pin'], Status>> = {
  approved: { tone: 'ok', shape: 'dot', label: 'approved' },
  new: { tone: 'info', shape: 'ring', label: 'new' },
  changed: { tone: 'warn', shape: 'triangle', label: 'changed' },
  flagged: { tone: 'bad', shape: 'triangle', label: 'flagged' },
  blocked: { tone: 'bad', shape: 'barred', label: 'blocked' },
  off: { tone: 'quiet', shape: 'dash', label: 'not pinned' },
}

export const streamStatuses: Readonly<Record<StreamState, Status>> = {
  live: { tone: 'ok', shape: 'dot', label: 'Live' },
  reconnecting: { tone: 'warn', shape: 'half', label: 'Reconnecting' },
  offline: { tone: 'bad', shape: 'cross', label: 'Offline' },
}

export const chainStatuses: Readonly<Record<ChainView['state'], Status>> = {
  intact: { tone: 'ok', shape: 'dot', label: 'intact' },
  checking: { tone: 'info', shape: 'half', label: 'checking' },
  unknown: { tone: 'quiet', shape: 'ring', label: 'not checked yet' },
  broken: { tone: 'bad', shape: 'cross', label: 'broken' },
}

export function decisionStatus(decision: unknown, isError: boolean): Status {
  if (decision === 'ALLOW') return isError ? { tone: 'warn', shape: 'triangle', label: 'ALLOW, tool error' } : allow
  if (decision === 'DENY') return { tone: 'bad', shape: 'barred', label: 'DENY' }
  if (decision === 'TIMEOUT') return { tone: 'bad', shape: 'half', label: 'TIMEOUT' }
  if (decision === 'ERROR') return { tone: 'bad', shape: 'cross', label: 'ERROR' }
  return { tone: 'quiet', shape: 'ring', label: 'no outcome recorded' }
}

const allow: Status = { tone: 'ok', shape: 'dot', label: 'ALLOW' }

export const allowedStatus: Status = { tone: 'ok', shape: 'dot', label: 'allowed' }
export const deniedStatus: Status = { tone: 'bad', shape: 'barred', label: 'denied' }

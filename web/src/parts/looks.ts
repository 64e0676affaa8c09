import type { BreakerView, CallView, ChainView, ServerHealth, ToolView } from '../../../src/serve/admin/contract.ts'
import type { StreamState } from '../api/live.ts'
import type { Look } from './mark.tsx'

export const healthLooks: Readonly<Record<ServerHealth, Look>> = {
  healthy: { tone: 'ok', shape: 'dot', word: 'healthy' },
  degraded: { tone: 'warn', shape: 'triangle', word: 'degraded' },
  unhealthy: { tone: 'bad', shape: 'cross', word: 'unhealthy' },
  'needs-auth': { tone: 'warn', shape: 'barred', word: 'needs sign-in' },
  starting: { tone: 'info', shape: 'half', word: 'starting' },
  stale: { tone: 'quiet', shape: 'ring', word: 'stale' },
  disabled: { tone: 'quiet', shape: 'dash', word: 'disabled' },
}

export const outcomeLooks: Readonly<Record<CallView['outcome'], Look>> = {
  running: { tone: 'info', shape: 'half', word: 'running' },
  answered: { tone: 'ok', shape: 'dot', word: 'answered' },
  tool_error: { tone: 'warn', shape: 'triangle', word: 'tool error' },
  denied: { tone: 'bad', shape: 'barred', word: 'denied' },
  failed: { tone: 'bad', shape: 'cross', word: 'failed' },
}

export const breakerLooks: Readonly<Record<BreakerView, Look>> = {
  closed: { tone: 'ok', shape: 'dot', word: 'closed' },
  'half-open': { tone: 'warn', shape: 'half', word: 'half-open' },
  open: { tone: 'bad', shape: 'cross', word: 'open' },
}

export const pinLooks: Readonly<Record<ToolView['pin'], Look>> = {
  pinned: { tone: 'ok', shape: 'dot', word: 'pinned' },
  new: { tone: 'info', shape: 'ring', word: 'new' },
  changed: { tone: 'warn', shape: 'triangle', word: 'changed' },
  quarantined: { tone: 'bad', shape: 'barred', word: 'quarantined' },
  off: { tone: 'quiet', shape: 'dash', word: 'not pinned' },
}

export const streamLooks: Readonly<Record<StreamState, Look>> = {
  live: { tone: 'ok', shape: 'dot', word: 'Live' },
  reconnecting: { tone: 'warn', shape: 'half', word: 'Reconnecting' },
  offline: { tone: 'bad', shape: 'cross', word: 'Offline' },
}

export const chainLooks: Readonly<Record<ChainView['state'], Look>> = {
  intact: { tone: 'ok', shape: 'dot', word: 'intact' },
  checking: { tone: 'info', shape: 'half', word: 'checking' },
  unknown: { tone: 'quiet', shape: 'ring', word: 'not checked yet' },
  broken: { tone: 'bad', shape: 'cross', word: 'broken' },
}

export function decisionLook(decision: unknown, isError: boolean): Look {
  if (decision === 'ALLOW') return isError ? { tone: 'warn', shape: 'triangle', word: 'ALLOW, tool error' } : allow
  if (decision === 'DENY') return { tone: 'bad', shape: 'barred', word: 'DENY' }
  if (decision === 'TIMEOUT') return { tone: 'bad', shape: 'half', word: 'TIMEOUT' }
  if (decision === 'ERROR') return { tone: 'bad', shape: 'cross', word: 'ERROR' }
  return { tone: 'quiet', shape: 'ring', word: 'no outcome recorded' }
}

const allow: Look = { tone: 'ok', shape: 'dot', word: 'ALLOW' }

export const allowedLook: Look = { tone: 'ok', shape: 'dot', word: 'allowed' }
export const deniedLook: Look = { tone: 'bad', shape: 'barred', word: 'denied' }

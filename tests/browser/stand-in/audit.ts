import type { AuditListQuery, AuditPage, AuditRow } from '../../../src/admin/contract.ts'
import { createChance } from './chance.ts'
import { callAt } from './traffic.ts'

const decisions = { denied: 'DENY', failed: 'TIMEOUT', tool_error: 'ALLOW', answered: 'ALLOW', running: undefined }

/** Records of a few hours, newest first. */
export function records(now: number, count: number): readonly AuditRow[] {
  const chance = createChance(11)
  return Array.from({ length: count }, (_, index) => {
    const call = callAt(now - index * 41_000, `call_${String(count - index).padStart(4, '0')}`, chance)
    return {
      ...{ time: new Date(call.at).toISOString(), lane: 'b3f1', seq: count - index, ended: true, call: call.id },
      ...{ agent: call.agent, principal: call.principal, address: '127.0.0.1', operation: call.operation },
      ...{ server: call.server, tool: call.name, write: false, decision: decisions[call.outcome] },
      ...(call.outcome === 'denied' && { reason: 'tool_not_allowed' }),
      rule:
        call.outcome === 'denied'
          ? `agents.${call.agent}.deny.tools.${call.server}[0]`
          : `agents.${call.agent}.allow.servers[0]`,
      ...(call.code !== null && { code: call.code }),
      ...{ is_error: call.outcome === 'tool_error', latency_ms: call.ms },
      arguments: { path: '/srv/notes/plan.md', query: 'repo:example/app is:open label:bug', token: '[redacted]' },
    }
  })
}

/** One page of matching records. */
export function searched(all: readonly AuditRow[], asked: AuditListQuery): AuditPage {
  const fits = (name: 'agent' | 'principal' | 'server' | 'tool' | 'decision') => (row: AuditRow) =>
    asked[name] === undefined || row[name] === asked[name]
  const found = all
    .filter(fits('agent'))
    .filter(fits('principal'))
    .filter(fits('server'))
    .filter(fits('tool'))
    .filter(fits('decision'))
    .filter(({ time }) => {
      const at = Date.parse(String(time))
      return at >= (asked.from ?? 0) && at < (asked.to ?? Number.POSITIVE_INFINITY)
    })
    .filter(({ arguments: given }) => JSON.stringify(given).includes(asked.text ?? ''))
  const start = Number(asked.cursor ?? 0)
  const end = start + asked.limit
  return { rows: found.slice(start, end), nextCursor: end < found.length ? String(end) : null }
}

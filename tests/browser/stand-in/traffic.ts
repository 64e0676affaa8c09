import type { CallDetail, CallView, Series } from '../../../src/admin/contract.ts'
import { type Chance, createChance } from './chance.ts'
import { agents, usualTools } from './tools.ts'

const usual: Readonly<Record<string, number>> = {
  filesystem: 2,
  github: 220,
  browser: 1300,
  postgres: 12,
  memory: 1.5,
  native: 0.2,
}

/** A finished call. */
export function callAt(at: number, id: string, chance: Chance): CallView {
  const tool = chance.of(usualTools)
  const luck = chance.next()
  const outcome = luck < 0.05 ? 'denied' : luck < 0.09 ? 'failed' : luck < 0.13 ? 'tool_error' : 'answered'
  const ms = outcome === 'denied' ? 0.1 : chance.duration(usual[tool.server] ?? 5)
  return {
    ...{ id, parent: luck > 0.9 ? 'call_0001' : null, at: at - ms, ms, agent: chance.of(agents), principal: 'token' },
    ...{ operation: 'call_tool', server: tool.server, name: tool.tool, outcome },
    code: { denied: 'DENIED_BY_POLICY', failed: 'TIMEOUT', tool_error: null, answered: null }[outcome],
    cache: outcome === 'answered' && tool.access === 'read' ? (luck > 0.5 ? 'hit' : 'miss') : null,
  }
}

/** The latest calls, newest first. */
export function recentCalls(now: number, count: number): CallView[] {
  const chance = createChance(7)
  const calls = Array.from({ length: count }, (_, index) =>
    callAt(now - index * 1700, `call_${String(count - index).padStart(4, '0')}`, chance),
  ).sort((one, another) => another.at - one.at)
  const [first] = calls
  // Older than any page that is loaded, and the only call of its agent.
  const oldest = calls.at(-1)
  if (oldest && count > 1_000)
    calls[count - 1] = { ...oldest, agent: 'retired', outcome: 'answered', code: null, ms: 3_540_000 }
  if (first) calls[0] = { ...first, outcome: 'running', ms: null, code: null, cache: null }
  return calls
}

/** Details of a call. */
export function detailOf(call: CallView, all: readonly CallView[]): CallDetail {
  const ms = call.ms ?? 400
  const sent = call.outcome !== 'denied' && call.cache !== 'hit'
  const retried = call.outcome === 'failed'
  const subject = {
    call: call.id,
    agent: call.agent,
    principal: call.principal,
    operation: call.operation,
    server: call.server,
    tool: call.name,
  }
  const at = (time: number) => new Date(time).toISOString()
  return {
    ...call,
    steps: sent
      ? [
          { name: 'queue', startMs: 0, ms: ms * 0.12, error: null },
          ...(retried ? [{ name: 'attempt', startMs: ms * 0.12, ms: ms * 0.4, error: 'SERVER_UNAVAILABLE' }] : []),
          {
            name: 'attempt',
            startMs: ms * (retried ? 0.6 : 0.12),
            ms: call.ms === null ? null : ms * (retried ? 0.4 : 0.86),
            error: retried ? call.code : null,
          },
        ]
      : [],
    children: all.filter(({ parent }) => parent === call.id).slice(0, 4),
    audit: {
      begin: {
        time: at(call.at),
        seq: 4711,
        phase: 'before',
        ...subject,
        arguments: { path: '/srv/notes/a.md', token: '[redacted]' },
      },
      end:
        call.ms === null
          ? null
          : {
              time: at(call.at + ms),
              seq: 4712,
              phase: 'after',
              ...subject,
              decision: call.outcome === 'denied' ? 'DENY' : 'ALLOW',
              rule: 'agents.researcher.allow.servers[1]',
              is_error: call.outcome === 'tool_error',
              latency_ms: ms,
            },
    },
    captured: {
      arguments: { text: '{"path":"/srv/notes/a.md","note":"it\'s"}', bytes: 40, truncated: false, redacted: false },
      result: sent
        ? {
            ...{ text: '{"content":[{"type":"text","text":"What the tool answered"}]}', bytes: 400_000 },
            ...{ truncated: false, redacted: false },
          }
        : null,
      error: call.code === null ? null : { code: call.code, message: 'The call was not answered.' },
      progress: [{ ms: ms / 2, progress: 1, total: 2, message: 'Half of it' }],
      droppedProgress: 0,
    },
    rerun: { possible: true, reason: null, write: true },
  }
}

/** Time series with waves, an incident and a gap. */
export function seriesOf(from: number, to: number): Series {
  const chance = createChance(3)
  const stepMs = Math.max(1000, Math.round((to - from) / 120))
  const points = Array.from({ length: Math.floor((to - from) / stepMs) }, (_, index) => {
    const at = from + index * stepMs
    const trouble = index > 84 && index < 96
    const perSecond = Math.max(0, (7 + 3 * Math.sin(index / 11) + chance.next() * 2) * (trouble ? 0.5 : 1))
    const calls = Math.round((perSecond * stepMs) / 1000)
    const p50 = (9 + 3 * Math.sin(index / 17) + chance.next() * 3) * (trouble ? 5 : 1)
    const quiet = index < 6
    return {
      ...{ at, calls, perSecond: quiet ? 0 : perSecond },
      errors: trouble ? Math.round(calls * 0.3) : Math.round(calls * 0.02 * chance.next()),
      toolErrors: Math.round(calls * 0.01 * chance.next()),
      denials: Math.round(calls * 0.05 * chance.next()),
      ...{
        averageMs: quiet ? null : p50 * 1.2,
        p50Ms: quiet ? null : p50,
        p95Ms: quiet ? null : p50 * 3.1,
        p99Ms: quiet ? null : p50 * 5.5,
      },
      ...{ cacheHits: Math.round(calls * 0.4), cacheMisses: Math.round(calls * 0.2 * chance.next()) },
      hitMs: quiet ? null : 0.3,
    }
  })
  return { from, to, stepMs, points }
}

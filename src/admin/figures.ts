import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import type { CallView, Figures, Series, Stats } from '../serve/admin/contract.ts'
import type { Range } from '../serve/admin/port.ts'
import { figuresOf, seriesOf, statsOf } from './own-figures.ts'
import type { AdminParts } from './parts.ts'
import { seesAllFigures } from './sight.ts'

/** What was counted, as far as somebody may see it: everything, or the calls of their own agent. */
export interface SeenFigures {
  lately(caller: Caller): Figures
  of(caller: Caller, by: Stats['by'], name: string): Figures
  series(caller: Caller, range: Range): Series
  stats(caller: Caller, by: Stats['by']): Stats
}

/** How far back an overview looks. */
const latelyMs = 60_000
const hourMs = 3_600_000
const keptMs = 500

export function createFigures({ stats, calls, present, clock }: AdminParts): SeenFigures {
  const all = (caller: Caller) => seesAllFigures(caller, present())
  let latest: { readonly agent: string; readonly at: number; readonly calls: readonly CallView[] } | undefined
  /** One answer may need the figures of many servers: the calls are looked for once. */
  const own = ({ agent }: Caller): readonly CallView[] => {
    const at = clock.now()
    if (latest?.agent === agent && at - latest.at < keptMs) return latest.calls
    latest = { agent, at, calls: calls.list({ agent }, Number.MAX_SAFE_INTEGER) }
    return latest.calls
  }
  const named = { agent: 'agent', server: 'server', operation: 'operation', tool: 'name' } as const

  return {
    lately(caller) {
      if (all(caller)) return stats.recent(latelyMs)
      const since = clock.now() - latelyMs
      const lately = own(caller).filter(({ at }) => at >= since)
      return figuresOf(lately, latelyMs)
    },
    of(caller, by, name) {
      if (all(caller)) return stats.of(by, name)
      const fits = by === 'tool' ? isTool(name) : (call: CallView) => call[named[by]] === name
      const found = own(caller).filter(fits)
      const since = found.at(-1)?.at ?? clock.now()
      return figuresOf(found, clock.now() - since)
    },
    series(caller, { to = clock.now(), from = to - hourMs }) {
      if (from >= to) throw new ToolwayError('INVALID_ARGUMENTS', 'The time must begin (from) before it ends (to).')
      return all(caller) ? stats.series(from, to) : seriesOf(own(caller), from, to)
    },
    stats: (caller, by) => (all(caller) ? stats.table(by) : statsOf(own(caller), by, clock.now())),
  }
}

const isTool = (name: string) => (call: CallView) =>
  call.operation === 'call_tool' && `${call.server}.${call.name}` === name

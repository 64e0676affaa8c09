import type { CallView } from '../../../../src/admin/contract.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { formatDuration } from '../../format/duration.ts'
import { callLink, targetOf } from './call-columns.tsx'

interface CallTreeProps {
  /** All inner calls, at any depth. */
  readonly calls: readonly CallView[]
  readonly parent: string
  readonly depth?: number
}

/** Deeper calls are listed on the same level, so that they stay readable. */
const maxDepth = 8

/** The calls that a call made, nested. */
export function CallTree({ calls, parent, depth = 0 }: CallTreeProps) {
  const own = calls.filter((call) => call.parent === parent)
  if (own.length === 0) return null
  return (
    <ul class={depth > 0 && depth < maxDepth ? 'call-tree nested' : 'call-tree'}>
      {own.map((call) => (
        <li key={call.id}>
          <span class="row spread">
            <span class="row">
              <StatusBadge status={outcomeStatuses[call.outcome]} />
              <a href={callLink(call.id)}>{targetOf(call)}</a>
            </span>
            <span class="quiet">{formatDuration(call.ms)}</span>
          </span>
          <CallTree calls={calls} parent={call.id} depth={depth + 1} />
        </li>
      ))}
    </ul>
  )
}

import type { ReloadEvent, ReloadView } from '../../../../src/admin/contract.ts'
import { Card } from '../../components/page.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { withoutExcerpt } from '../../format/excerpt.ts'
import { formatCount } from '../../format/number.ts'

const applied = { tone: 'ok', shape: 'dot', label: 'applied' } as const
const rejected = { tone: 'bad', shape: 'cross', label: 'rejected' } as const

interface ReloadHistoryProps {
  readonly reload: ReloadView
  readonly history: readonly ReloadEvent[]
}

/** The attempts to reload the configuration, newest first. */
export function ReloadHistory({ reload, history }: ReloadHistoryProps) {
  const events = history.toSorted((a, b) => b.at - a.at)
  return (
    <Card
      title="Reloads"
      side={
        <span class="quiet small">
          {formatCount(reload.successes)} of {formatCount(reload.attempts)} applied
        </span>
      }
    >
      {events.length === 0 ? (
        <p class="quiet">None since Toolway started. Save a configuration file, and the changes appear here.</p>
      ) : (
        <ol class="stack">
          {events.map((event) => (
            <li key={event.at} class="stack tight">
              <span class="row spread">
                <StatusBadge status={event.ok ? applied : rejected} />
                <span class="quiet">
                  <RelativeTime at={event.at} />
                </span>
              </span>
              {event.error !== null && <p class="tone-bad pre">{withoutExcerpt(event.error)}</p>}
              {event.ok && event.changes.length === 0 && <p class="quiet">No effective changes.</p>}
              {event.changes.length > 0 && (
                <ul>
                  {event.changes.map((change) => (
                    <li key={change}>
                      <code>{change}</code>
                    </li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}

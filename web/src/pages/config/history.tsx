import type { ReloadEvent, ReloadView } from '../../../../src/serve/admin/contract.ts'
import { withoutExcerpt } from '../../format/excerpt.ts'
import { formatCount } from '../../format/number.ts'
import { Mark } from '../../parts/mark.tsx'
import { Ago } from '../../parts/moment.tsx'
import { Card } from '../../parts/page.tsx'

const taken = { tone: 'ok', shape: 'dot', word: 'applied' } as const
const kept = { tone: 'bad', shape: 'cross', word: 'rejected' } as const

interface HistoryProps {
  readonly reload: ReloadView
  readonly history: readonly ReloadEvent[]
}

/** Reload attempts, newest first. */
export function History({ reload, history }: HistoryProps) {
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
                <Mark look={event.ok ? taken : kept} />
                <span class="quiet">
                  <Ago at={event.at} />
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

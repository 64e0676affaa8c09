import { isAdmin } from '../../api/session.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { formatDuration } from '../../format/duration.ts'
import { formatCount } from '../../format/number.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { stageNames, type ToolRun, type Turn } from './turn.ts'

export function TurnView({ turn }: { readonly turn: Turn }) {
  const { question, id, calls, thinking, text, notes, error, state, tokens } = turn
  return (
    <li class="turn stack tight">
      <p class="question">
        <span class="hidden">You: </span>
        {question}
      </p>
      {calls.length > 0 && <ToolRuns runs={calls} chat={id} />}
      {thinking !== '' && (
        <details>
          <summary class="quiet small">Reasoning</summary>
          <p class="message-text quiet">{thinking}</p>
        </details>
      )}
      {text !== '' && (
        <p class="message-text">
          <span class="hidden">Answer: </span>
          {text}
        </p>
      )}
      {notes.map((note) => (
        <Note key={note}>
          <p>{note}</p>
        </Note>
      ))}
      {error && (
        <Note tone="bad">
          <p>{error.message}</p>
          <p class="quiet small">{error.code}</p>
        </Note>
      )}
      <p class="row quiet small" role="status">
        {statusOf(turn)}
        {tokens !== undefined && tokens > 0 && <span>{formatCount(tokens)} tokens</span>}
        {state !== 'running' && id !== undefined && isAdmin.value && (
          <a href={withQuery(pathTo('audit'), { parent: id })}>Audit records</a>
        )}
      </p>
    </li>
  )
}

function statusOf({ state, stage }: Turn): string {
  if (state === 'running') return `${stage ? stageNames[stage] : 'Sending'}…`
  return { answered: 'Answered', stopped: 'Stopped', failed: 'Failed' }[state]
}

interface ToolRunsProps {
  readonly runs: readonly ToolRun[]
  /** The chat's ID. In the audit log, the chat is the parent of its calls. */
  readonly chat: string | undefined
}

function ToolRuns({ runs, chat }: ToolRunsProps) {
  return (
    <ul class="runs" aria-label="Tools">
      {runs.map((run) => (
        <li key={run.call}>
          <details>
            <summary class="row">
              <StatusBadge status={outcomeStatuses[run.state]} />
              <code>
                <BreakableName name={run.name} />
              </code>
              {run.ms !== undefined && <span class="quiet">{formatDuration(run.ms)}</span>}
            </summary>
            <div class="stack tight">
              <pre class="message-text small">{JSON.stringify(run.arguments, undefined, 2)}</pre>
              {run.text !== '' && <p class="message-text small">{run.text}</p>}
              {chat !== undefined && isAdmin.value && (
                <a class="small" href={withQuery(pathTo('audit'), { parent: chat, server: run.server })}>
                  Audit records of {run.server} in this chat
                </a>
              )}
            </div>
          </details>
        </li>
      ))}
    </ul>
  )
}

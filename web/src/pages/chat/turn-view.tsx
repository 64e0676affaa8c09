import { isAdmin } from '../../api/session.ts'
import { count } from '../../format/number.ts'
import { Note } from '../../parts/states.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { ToolRuns } from './tool-runs.tsx'
import { stageNames, type Turn } from './turn.ts'

export function TurnView({ turn }: { readonly turn: Turn }) {
  const { asked, id, calls, thinking, text, notes, error, state, tokens } = turn
  return (
    <li class="turn stack tight">
      <p class="asked">
        <span class="hidden">You: </span>
        {asked}
      </p>
      {calls.length > 0 && <ToolRuns runs={calls} chat={id} />}
      {thinking !== '' && (
        <details>
          <summary class="quiet small">Reasoning</summary>
          <p class="said quiet">{thinking}</p>
        </details>
      )}
      {text !== '' && (
        <p class="said">
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
        {tokens !== undefined && tokens > 0 && <span>{count(tokens)} tokens</span>}
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

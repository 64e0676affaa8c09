import { isAdmin } from '../../api/session.ts'
import { took } from '../../format/duration.ts'
import { outcomeLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Name } from '../../parts/name.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import type { ToolRun } from './turn.ts'

interface RunsProps {
  readonly runs: readonly ToolRun[]
  /** ID of the chat, which is the parent of its calls in the audit log. */
  readonly chat: string | undefined
}

export function ToolRuns({ runs, chat }: RunsProps) {
  return (
    <ul class="runs" aria-label="Tools">
      {runs.map((run) => (
        <li key={run.call}>
          <details>
            <summary class="row">
              <Mark look={outcomeLooks[run.state]} />
              <code>
                <Name of={run.name} />
              </code>
              {run.ms !== undefined && <span class="quiet">{took(run.ms)}</span>}
            </summary>
            <div class="stack tight">
              <pre class="said small">{JSON.stringify(run.arguments, undefined, 2)}</pre>
              {run.text !== '' && <p class="said small">{run.text}</p>}
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

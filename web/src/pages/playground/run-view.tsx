import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { TryResult } from '../../../../src/admin/contract.ts'
import { ApiError } from '../../api/request.ts'
import { Button } from '../../components/button.tsx'
import { LoadError, Note } from '../../components/states.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatProgress } from '../../format/number.ts'
import { pathTo } from '../../routing/route.ts'
import { Ask } from './ask.tsx'
import type { PlaygroundRun } from './run.ts'
import './playground.css'

interface RunViewProps {
  readonly run: PlaygroundRun | undefined
  cancel(): void
  answered(id: string): void
  /** Shown before the first run. */
  readonly hint: string
  children(result: TryResult): ComponentChildren
}

/** A run: the elapsed time, progress, questions of the server, and in the end the result. */
export function RunView({ run, cancel, answered, hint, children }: RunViewProps) {
  if (!run) return <p class="quiet">{hint}</p>
  const { outcome } = run
  const last = run.progress.at(-1)
  return (
    <div class="stack">
      {run.state === 'running' && (
        <div class="row spread">
          <span role="status">
            Running, <Elapsed since={run.startedAt} />
          </span>
          <Button icon="close" onClick={cancel}>
            Cancel
          </Button>
        </div>
      )}
      {run.state === 'running' && last?.progress != null && (
        <progress
          class="progress-bar"
          aria-label="Progress"
          value={last.total === null ? undefined : last.progress}
          max={last.total ?? undefined}
        />
      )}
      {run.progress.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
        <ol class="progress-list" aria-label="Progress messages" tabIndex={0}>
          {run.progress.map((one, index) => (
            <li key={index}>{formatProgress(one)}</li>
          ))}
        </ol>
      )}
      {run.asks.map((ask) => (
        <Ask key={ask.id} ask={ask} answered={() => answered(ask.id)} />
      ))}
      {run.state === 'cancelled' && (
        <Note tone="warn">
          <p role="status">
            Cancelled. {run.call !== undefined && <a href={pathTo('calls', run.call)}>Timeline and audit record</a>}
          </p>
        </Note>
      )}
      {outcome instanceof ApiError && <LoadError error={outcome} what="the result" />}
      {outcome !== undefined && !(outcome instanceof ApiError) && children(outcome)}
    </div>
  )
}

function Elapsed({ since }: { readonly since: number }) {
  const ms = useSignal(Date.now() - since)
  useEffect(() => {
    const timer = setInterval(() => (ms.value = Date.now() - since), 100)
    return () => clearInterval(timer)
  }, [since])
  return <>{formatDuration(Math.floor(ms.value / 100) * 100)}</>
}

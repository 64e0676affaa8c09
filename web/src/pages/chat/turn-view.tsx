import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { isAdmin } from '../../api/session.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { ForeignText } from '../../components/foreign-text.tsx'
import { Markdown } from '../../components/markdown/markdown.tsx'
import { Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { showDirections } from '../../format/show-directions.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { isSendKey } from './composer.tsx'
import { type AttachedImage, type Step, stageNames, type ToolRun, type Turn } from './turn.ts'

interface TurnViewProps {
  readonly turn: Turn
  retry(): void
  /** Sends another message instead of this one. The turns after it are removed. */
  edit(text: string): void
}

export function TurnView({ turn, retry, edit }: TurnViewProps) {
  const { calls, thinking, text, notes, error, steps } = turn
  const draft = useSignal<string | undefined>(undefined)
  const editButton = useRef<HTMLButtonElement>(null)
  const cancel = () => {
    draft.value = undefined
    editButton.current?.focus()
  }
  const send = () => {
    const next = draft.value?.trim() ?? ''
    if (next === '') return cancel()
    draft.value = undefined
    edit(next)
  }
  return (
    <li class="turn stack tight">
      {draft.value === undefined ? (
        <Question turn={turn} />
      ) : (
        <EditedQuestion draft={draft} send={send} cancel={cancel} />
      )}
      {calls.length > 0 && <ToolRuns runs={calls} />}
      {thinking !== '' && (
        <details>
          <summary class="quiet small">Reasoning</summary>
          <ForeignText text={thinking} class="message-text quiet" />
        </details>
      )}
      {text !== '' && (
        <div>
          <span class="hidden">Answer: </span>
          <Markdown text={text} growing={turn.state === 'running'} />
        </div>
      )}
      {notes.map((note) => (
        <Note key={note}>
          <p>{note}</p>
        </Note>
      ))}
      {error && (
        <Note tone="bad">
          <ForeignText text={error.message} />
          <p class="quiet small">{error.code}</p>
        </Note>
      )}
      <TurnFooter turn={turn}>
        <Button kind="plain tiny" icon="refresh" onClick={retry}>
          Retry
        </Button>
        <Button
          kind="plain tiny"
          icon="write"
          ref={editButton}
          aria-expanded={draft.value !== undefined}
          onClick={() => (draft.value = turn.question)}
        >
          Edit
        </Button>
      </TurnFooter>
      {steps.length > 0 && <Steps steps={steps} />}
    </li>
  )
}

const Question = ({ turn: { question, images } }: { readonly turn: Turn }) => (
  <p class="question" dir="auto">
    <bdi class="hidden">You: </bdi>
    {question}
    {images.map((image, index) => (
      <ImageView key={index} image={image} />
    ))}
  </p>
)

interface EditedQuestionProps {
  readonly draft: Signal<string | undefined>
  send(): void
  cancel(): void
}

function EditedQuestion({ draft, send, cancel }: EditedQuestionProps) {
  const submit = (event: Event) => {
    event.preventDefault()
    send()
  }
  return (
    <form class="question stack tight" onSubmit={submit}>
      <textarea
        class="input"
        dir="auto"
        aria-label="Edit the message"
        rows={3}
        value={draft.value}
        ref={focusNew}
        onInput={({ currentTarget }) => (draft.value = currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') cancel()
          if (isSendKey(event)) submit(event)
        }}
      />
      <p class="quiet small">The messages after this one are removed.</p>
      <div class="row">
        <Button kind="primary" type="submit">
          Send
        </Button>
        <Button onClick={cancel}>Cancel</Button>
      </div>
    </form>
  )
}

interface TurnFooterProps {
  readonly turn: Turn
  /** Shown once the turn has ended. */
  readonly children: ComponentChildren
}

function TurnFooter({ turn, children }: TurnFooterProps) {
  const { id, text, state, tokens, durationMs } = turn
  return (
    <div class="row quiet small">
      <span role="status">{statusOf(turn)}</span>
      {durationMs !== undefined && <span>{formatDuration(durationMs)}</span>}
      {tokens !== undefined && tokens > 0 && <span>{formatCount(tokens)} tokens</span>}
      {state !== 'running' && id !== undefined && isAdmin.value && (
        <a href={withQuery(pathTo('audit'), { parent: id })}>Audit records</a>
      )}
      {state !== 'running' && children}
      {state !== 'running' && text !== '' && <CopyButton text={text} label="Copy the answer" />}
    </div>
  )
}

/** The same function for each rendering, so that only a new field gets the focus. */
const focusNew = (element: HTMLElement | null): void => element?.focus()

function statusOf({ state, steps }: Turn): string {
  const stage = steps.at(-1)?.stage
  if (state === 'running') return `${stage ? stageNames[stage] : 'Sending'}…`
  return { answered: 'Answered', stopped: 'Stopped', failed: 'Failed' }[state]
}

const ImageView = ({ image: { name, url } }: { readonly image: AttachedImage }) =>
  url === undefined ? <span class="chip">{name}</span> : <img class="attached" src={url} alt={name} />

/** What each step took. */
function Steps({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <details>
      <summary class="quiet small">{pluralize(steps.length, 'step')}</summary>
      <ol class="steps small" aria-label="Steps">
        {steps.map(({ stage, round, ms, tokens }, index) => (
          <li key={index} class="row">
            <span>
              {stageNames[stage]}
              {round > 1 && `, round ${round}`}
            </span>
            {ms !== undefined && <span class="quiet">{formatDuration(ms)}</span>}
            {tokens !== undefined && tokens > 0 && <span class="quiet">{formatCount(tokens)} tokens</span>}
          </li>
        ))}
      </ol>
    </details>
  )
}

function ToolRuns({ runs }: { readonly runs: readonly ToolRun[] }) {
  return (
    <ul class="runs" aria-label="Tools">
      {runs.map((run) => (
        <li key={run.call} class="run">
          <details>
            <summary class="row">
              <StatusBadge status={outcomeStatuses[run.state]} />
              <code>
                <BreakableName name={run.name} />
              </code>
              {run.ms !== undefined && <span class="quiet">{formatDuration(run.ms)}</span>}
            </summary>
            <div class="stack tight">
              <pre class="message-text small" dir="auto">
                {showDirections(JSON.stringify(run.arguments, undefined, 2))}
              </pre>
              <ForeignText text={run.text} class="message-text small" />
            </div>
          </details>
          {run.id !== undefined && (
            <a class="small" href={pathTo('calls', run.id)} aria-label={`Call of ${run.name}`}>
              Call
            </a>
          )}
        </li>
      ))}
    </ul>
  )
}

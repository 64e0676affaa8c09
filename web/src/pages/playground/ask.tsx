import { useSignal } from '@preact/signals'
import type { PlaygroundEvent } from '../../../../src/admin/contract.ts'
import { answerAsk } from '../../api/playground.ts'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { withNotice } from '../../components/notices.tsx'
import { showDirections } from '../../format/show-directions.ts'
import { ArgumentEditor } from '../../schema-form/argument-editor.tsx'
import { initialValue } from '../../schema-form/initial-value.ts'
import { missingValues } from '../../schema-form/problems.ts'
import { isObject, objectAt } from '../../schema-form/schema.ts'

interface AskProps {
  readonly ask: Extract<PlaygroundEvent, { kind: 'ask' }>
  answered(): void
}

type Answer = Parameters<typeof answerAsk>[1]

/** A request from the server or from Toolway, to be answered by the user. Its texts are shown as they are. */
export function Ask({ ask, answered }: AskProps) {
  const params = isObject(ask.params) ? ask.params : {}
  const asker = ask.from === 'toolway' ? 'Toolway' : 'the server'
  const send = async (answer: Answer) => {
    await withNotice(
      () => answerAsk(ask.id, answer),
      () => 'Answered.',
    )
    answered()
  }
  return (
    <section class="card ask" aria-label={`Question from ${asker}`}>
      <div class="card-body stack">
        {ask.method === 'sampling/createMessage' ? (
          <Sampling params={params} send={send} />
        ) : params.mode === 'url' ? (
          <OpenUrl params={params} send={send} />
        ) : (
          <Elicitation asker={asker} params={params} send={send} />
        )}
      </div>
    </section>
  )
}

interface AnswerProps {
  readonly params: Readonly<Record<string, unknown>>
  send(answer: Answer): Promise<void>
}

function Elicitation({ asker, params, send }: AnswerProps & { readonly asker: string }) {
  const schema = objectAt(params, 'requestedSchema')
  const value = useSignal(initialValue(schema, schema))
  const attempted = useSignal(false)
  const broken = useSignal(false)
  const missing = missingValues(value.value, schema, schema)
  const accept = () => {
    attempted.value = true
    if (missing.length === 0 && !broken.value) {
      void send({ result: { action: 'accept', content: value.value ?? {} } })
    }
  }
  return (
    <>
      <p>
        <strong>{asker === 'Toolway' ? 'Toolway' : 'The server'} asks:</strong>{' '}
        <bdi>{showDirections(String(params.message ?? ''))}</bdi>
      </p>
      <ArgumentEditor
        titled
        schema={schema}
        value={value.value}
        problems={attempted.value ? missing : []}
        onChange={(next) => (value.value = next)}
        onInvalidJson={(is) => (broken.value = is)}
      />
      <Choices accept="Send answer" onAccept={accept} send={send} />
    </>
  )
}

function OpenUrl({ params, send }: AnswerProps) {
  const url = String(params.url ?? '')
  const safe = URL.canParse(url) && ['https:', 'http:'].includes(new URL(url).protocol)
  return (
    <>
      <p>
        <strong>The server asks you to open a page:</strong> <bdi>{showDirections(String(params.message ?? ''))}</bdi>
      </p>
      {safe ? (
        <a href={url} target="_blank" rel="noopener noreferrer">
          {showDirections(url)}
        </a>
      ) : (
        <code>{showDirections(url)}</code>
      )}
      <Choices accept="Continue" onAccept={() => void send({ result: { action: 'accept' } })} send={send} />
    </>
  )
}

interface ChoicesProps extends Pick<AnswerProps, 'send'> {
  readonly accept: string
  onAccept(): void
}

const Choices = ({ accept, onAccept, send }: ChoicesProps) => (
  <div class="row">
    <Button kind="primary" onClick={onAccept}>
      {accept}
    </Button>
    <Button onClick={() => void send({ result: { action: 'decline' } })}>Decline</Button>
    <Button onClick={() => void send({ result: { action: 'cancel' } })}>Dismiss</Button>
  </div>
)

/** A sampling request, which the user answers in place of a model. */
function Sampling({ params, send }: AnswerProps) {
  const text = useSignal('')
  const { messages, systemPrompt } = params
  const content = { type: 'text', text: text.value }
  return (
    <>
      <p>
        <strong>The server requests a model completion (sampling).</strong> Write the answer, or refuse.
      </p>
      {typeof systemPrompt === 'string' && <CodeBlock text={systemPrompt} label="System prompt" wrap />}
      <CodeBlock text={JSON.stringify(messages ?? [], null, 2)} label="Messages" wrap />
      <label class="filter">
        <span>Answer</span>
        <textarea
          class="input"
          rows={3}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      </label>
      <div class="row">
        <Button
          kind="primary"
          onClick={() => void send({ result: { role: 'assistant', model: 'person', content, stopReason: 'endTurn' } })}
        >
          Send answer
        </Button>
        <Button onClick={() => void send({ error: 'The user refused the request.' })}>Refuse</Button>
      </div>
    </>
  )
}

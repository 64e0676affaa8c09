import { useSignal } from '@preact/signals'
import type { PromptView, ResourceView, TryResult } from '../../../../src/admin/contract.ts'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { ForeignText } from '../../components/foreign-text.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Card } from '../../components/page.tsx'
import { memberOf } from '../../schema-form/path.ts'
import { isObject } from '../../schema-form/schema.ts'
import { ContentBlock } from '../tools/content-block.tsx'
import { TryOutcome } from '../tools/try-outcome.tsx'
import { CompletedInput } from './completed-input.tsx'
import { usePlayground } from './run.ts'
import { RunView } from './run-view.tsx'
import { expandTemplate, variablesOf } from './uri-template.ts'
import '../../schema-form/schema-form.css'

interface Argument {
  readonly name: string
  readonly description: string
  readonly required: boolean
}

/** Reads a resource. A template has a field for each of its variables. */
export function ResourceForm({ resource }: { readonly resource: ResourceView }) {
  const { uri, template, name, description } = resource
  const fields = template ? variablesOf(uri).map((one) => ({ name: one, description: '', required: false })) : []
  return (
    <EntryForm
      title={name || uri}
      description={description}
      kind="resource"
      entry={uri}
      fields={fields}
      button="Read"
      requestOf={(values) => ({
        operation: 'read_resource',
        name: template ? expandTemplate(uri, values) : uri,
        arguments: '{}',
        agent: undefined,
      })}
    />
  )
}

export function PromptForm({ prompt }: { readonly prompt: PromptView }) {
  return (
    <EntryForm
      title={prompt.title ?? prompt.name}
      description={prompt.description}
      kind="prompt"
      entry={prompt.name}
      fields={prompt.arguments}
      button="Get"
      requestOf={(values) => ({
        operation: 'get_prompt',
        name: prompt.name,
        arguments: JSON.stringify(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))),
        agent: undefined,
      })}
    />
  )
}

interface EntryFormProps {
  readonly title: string
  readonly description: string
  readonly kind: 'prompt' | 'resource'
  /** The name or URI template whose arguments are completed. */
  readonly entry: string
  readonly fields: readonly Argument[]
  readonly button: string
  requestOf(values: Readonly<Record<string, string>>): Parameters<ReturnType<typeof usePlayground>['start']>[0]
}

function EntryForm({ title, description, kind, entry, fields, button, requestOf }: EntryFormProps) {
  const values = useSignal<Readonly<Record<string, string>>>({})
  const playground = usePlayground()
  const missing = fields.filter(({ name, required }) => required && (memberOf(values.value, name) ?? '') === '')
  return (
    <div class="grid-2 try">
      <Card title={title}>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault()
            if (missing.length === 0) void playground.start(requestOf(values.value))
          }}
        >
          <ForeignText text={description} class="description" />
          <p>
            <code class="breakable">{kind === 'resource' ? requestOf(values.value).name : entry}</code>
          </p>
          {fields.map((field) => (
            <CompletedInput
              key={field.name}
              kind={kind}
              name={entry}
              argument={field.name}
              description={field.description}
              required={field.required}
              values={values.value}
              onChange={(value) => (values.value = { ...values.value, [field.name]: value })}
            />
          ))}
          <div class="row">
            <Button kind="primary" type="submit" aria-disabled={missing.length > 0}>
              {button}
            </Button>
            {missing.length > 0 && <span class="quiet small">Needs {missing.map(({ name }) => name).join(', ')}</span>}
          </div>
        </form>
      </Card>
      <Card title="Result">
        <RunView
          run={playground.run}
          cancel={playground.cancel}
          answered={playground.answered}
          hint="The result appears here. Rules, limits and the audit log apply as to any call."
        >
          {(result) => <EntryResult result={result} />}
        </RunView>
      </Card>
    </div>
  )
}

/** The contents of a resource, or the messages of a prompt. */
function EntryResult({ result }: { readonly result: TryResult }) {
  const { contents, messages } = result.result ?? {}
  if (result.error || !(Array.isArray(contents) || Array.isArray(messages))) return <TryOutcome result={result} />
  return (
    <div class="stack" data-testid="outcome">
      {Array.isArray(contents) && contents.map((one, index) => <Contents key={index} contents={one} />)}
      {Array.isArray(messages) && messages.map((one, index) => <Message key={index} message={one} />)}
      <details>
        <summary>JSON</summary>
        <CodeBlock text={JSON.stringify(result.result, null, 2)} label="Full result" />
      </details>
    </div>
  )
}

const Contents = ({ contents }: { readonly contents: unknown }) => (
  <ContentBlock block={{ type: 'resource', resource: contents }} />
)

function Message({ message }: { readonly message: unknown }) {
  if (!isObject(message)) return <JsonTree value={message} name="message" />
  return (
    <div class="stack tight">
      <span class="label">{String(message.role)}</span>
      <ContentBlock block={message.content} />
    </div>
  )
}

import { useSignal } from '@preact/signals'
import type { ConfigEdit, PolicyPart } from '../../../../src/serve/admin/contract.ts'
import { Tabs } from '../../components/tabs.tsx'
import { SchemaForm } from '../../schema-form/argument-editor.tsx'
import { problemsOf } from '../../schema-form/check.ts'
import { parseJson } from '../../schema-form/parse-input.ts'
import type { Schema } from '../../schema-form/schema.ts'

interface PartEditorProps {
  readonly part: PolicyPart
  readonly schema: Schema
  readonly file: string
  onReview(edit: ConfigEdit): void
}

const views = { form: 'Form', yaml: 'YAML' } as const

/** Edits one part of the policy, as a form generated from the schema of the configuration or as YAML. */
export function PartEditor({ part, schema, file, onReview }: PartEditorProps) {
  const isNew = part.kind === 'agent' && part.path[1] === ''
  const empty = part.kind === 'guards' ? [] : {}
  const name = useSignal('')
  const view = useSignal<keyof typeof views>('form')
  const value = useSignal<unknown>(part.value ?? empty)
  const text = useSignal(part.yaml)
  const edited = useSignal(false)
  const stuck = useSignal(false)
  const path = isNew ? ['agents', name.value.trim()] : part.path

  const switchView = (next: keyof typeof views) => {
    if (next === view.value) return
    stuck.value = false
    if (edited.value && next === 'yaml') text.value = `${JSON.stringify(value.value, null, 2)}\n`
    if (edited.value && next === 'form') {
      // The page has no YAML parser, but JSON is YAML too.
      const parsed = parseJson(text.value)
      if ('error' in parsed) {
        stuck.value = true
        return
      }
      value.value = parsed.value
    }
    view.value = next
  }
  const review = (event: SubmitEvent) => {
    event.preventDefault()
    const change = view.value === 'form' ? { path, value: value.value } : { path, yaml: text.value }
    onReview({ changes: [change] })
  }
  const change = (next: unknown) => {
    edited.value = true
    value.value = next
  }
  return (
    <form class="stack" onSubmit={review}>
      <p class="quiet small">
        <code>{isNew ? 'agents.NAME' : part.path.join('.')}</code> in <code>{file}</code>
      </p>
      {isNew && (
        <label class="stack tight">
          <span>Name of the agent</span>
          <input
            class="input"
            required
            autocomplete="off"
            value={name.value}
            onInput={({ currentTarget }) => (name.value = currentTarget.value)}
          />
        </label>
      )}
      <Tabs label="Editor" names={views} value={view.value} onChange={switchView}>
        {view.value === 'form' ? (
          <SchemaForm
            schema={schema}
            value={value.value}
            problems={problemsOf(value.value, schema, schema)}
            onChange={change}
          />
        ) : (
          <textarea
            class="input mono raw"
            aria-label={`${part.title} as YAML`}
            rows={Math.min(24, Math.max(8, text.value.split('\n').length + 1))}
            spellcheck={false}
            value={text.value}
            onInput={({ currentTarget }) => {
              edited.value = true
              text.value = currentTarget.value
            }}
          />
        )}
      </Tabs>
      {stuck.value && (
        <p class="problem" role="alert">
          The form cannot show edited YAML. Review it as it is, or save it first.
        </p>
      )}
      <div class="actions row end">
        {!isNew && part.kind === 'agent' && (
          <button
            type="button"
            class="button danger"
            onClick={() => onReview({ changes: [{ path: part.path.map(String) }] })}
          >
            Remove the agent
          </button>
        )}
        <button type="submit" class="button primary" disabled={isNew && name.value.trim() === ''}>
          Review
        </button>
      </div>
    </form>
  )
}

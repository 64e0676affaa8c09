import { useSignal } from '@preact/signals'
import type { ConfigEdit, PolicyPart } from '../../../../src/serve/admin/contract.ts'
import { type EditedValue, ValueEditor } from '../../config-edit/value-editor.tsx'
import type { Schema } from '../../schema-form/schema.ts'

interface PartEditorProps {
  readonly part: PolicyPart
  readonly schema: Schema
  readonly file: string
  onReview(edit: ConfigEdit): void
}

/** Edits one part of the policy, as a form generated from the schema of the configuration or as YAML. */
export function PartEditor({ part, schema, file, onReview }: PartEditorProps) {
  const isNew = part.kind === 'agent' && part.path[1] === ''
  const empty = part.kind === 'guards' ? [] : {}
  const name = useSignal('')
  const edited = useSignal<EditedValue>({ value: part.value ?? empty })
  const path = isNew ? ['agents', name.value.trim()] : part.path

  const review = (event: SubmitEvent) => {
    event.preventDefault()
    onReview({ changes: [{ path, ...(isNew && { isNew }), ...edited.value }] })
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
      <ValueEditor
        title={part.title}
        schema={schema}
        value={part.value ?? empty}
        yaml={part.yaml}
        onChange={(next) => (edited.value = next)}
      />
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

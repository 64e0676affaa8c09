import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ConfigEdit, PolicyPart } from '../../../../src/admin/contract.ts'
import { Button } from '../../components/button.tsx'
import { Note } from '../../components/states.tsx'
import { type EditedValue, ValueEditor } from '../../config-edit/value-editor.tsx'
import { useUnsaved } from '../../routing/unsaved.ts'
import type { Schema } from '../../schema-form/schema.ts'

interface PartEditorProps {
  readonly part: PolicyPart
  readonly schema: Schema
  readonly file: string
  onReview(edit: ConfigEdit): void
  /** Fills the form with the current values. */
  onLoadCurrent(): void
}

/** Edits one part of the policy, as a form generated from the schema of the configuration or as YAML. */
export function PartEditor({ part: current, schema, file, onReview, onLoadCurrent }: PartEditorProps) {
  const name = useSignal('')
  const edited = useSignal<EditedValue | undefined>(undefined)
  /** What the form was filled with. Once something is typed, it stays when the file changes. */
  const filled = useRef(current)
  if (name.value === '' && edited.value === undefined) filled.current = current
  useUnsaved(name.value !== '' || edited.value !== undefined)
  const part = filled.current
  const isNew = part.kind === 'agent' && part.path[1] === ''
  const empty = part.kind === 'guards' ? [] : {}
  const path = isNew ? ['agents', name.value.trim()] : part.path

  const review = (event: SubmitEvent) => {
    event.preventDefault()
    const value = edited.value ?? { value: part.value ?? empty }
    onReview({ changes: [{ path, ...(isNew ? { isNew } : { was: part.hash }), ...value }] })
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
      {part.hash !== current.hash && (
        <Note tone="warn">
          <p>
            <code>{part.path.join('.')}</code> has been changed since you started to edit it.
          </p>
          <p>
            <Button kind="tiny danger" onClick={onLoadCurrent}>
              Discard my changes and load the current values
            </Button>
          </p>
        </Note>
      )}
      <ValueEditor
        key={part.hash}
        title={part.title}
        schema={schema}
        value={part.value ?? empty}
        yaml={part.yaml}
        onChange={(next) => (edited.value = next)}
      />
      <div class="actions row end">
        {!isNew && part.kind === 'agent' && (
          <Button kind="danger" onClick={() => onReview({ changes: [{ path: part.path.map(String) }] })}>
            Remove the agent
          </Button>
        )}
        <Button kind="primary" type="submit" disabled={isNew && name.value.trim() === ''}>
          Review
        </Button>
      </div>
    </form>
  )
}

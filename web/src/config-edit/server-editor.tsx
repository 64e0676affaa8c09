import { useSignal } from '@preact/signals'
import type { ConfigEdit, ServerDefinitionView } from '../../../src/serve/admin/contract.ts'
import { navigate } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { EntryEditor } from './entry-editor.tsx'
import { ReviewChange } from './review-change.tsx'

interface ServerEditorProps {
  readonly server: ServerDefinitionView
  onSaved(): void
}

type Mode = 'edit' | 'duplicate'

/** The buttons that change a server in the configuration file. */
export function ServerEditor({ server: { name, yaml, definition, editable }, onSaved }: ServerEditorProps) {
  const mode = useSignal<Mode | undefined>(undefined)
  const review = useSignal<
    { readonly title: string; readonly edit: ConfigEdit; readonly removes?: boolean } | undefined
  >(undefined)
  const path = ['mcpServers', name]
  const close = () => {
    mode.value = undefined
    review.value = undefined
  }
  const reviewed = review.value
  const isDisabled = definition?.disabled === true
  const disable = () => {
    const change = { path: [...path, 'disabled'], ...(!isDisabled && { value: true }) }
    review.value = { title: `${isDisabled ? 'Enable' : 'Disable'} ${name}`, edit: { changes: [change] } }
  }
  const remove = () => {
    review.value = { title: `Remove ${name}`, edit: { changes: [{ path }] }, removes: true }
  }
  return (
    <div class="stack tight">
      {!editable.ok && <p class="quiet">{editable.reason}</p>}
      {definition && (
        <div class="row">
          <button type="button" class="button" onClick={() => (mode.value = 'edit')}>
            Edit
          </button>
          <button type="button" class="button" onClick={() => (mode.value = 'duplicate')}>
            Duplicate
          </button>
          <button type="button" class="button" onClick={disable}>
            {isDisabled ? 'Enable' : 'Disable'}
          </button>
          <button type="button" class="button danger" onClick={remove}>
            Remove
          </button>
        </div>
      )}
      {mode.value && (
        <EntryEditor
          key={mode.value}
          title={`${mode.value === 'edit' ? 'Edit' : 'Duplicate'} ${name}`}
          label="Definition (YAML). Placeholders such as <secret …> keep the secret."
          text={yaml}
          testable
          {...(mode.value === 'duplicate' && { nameLabel: 'Name of the copy', name: `${name}-2`, nameRequired: true })}
          editOf={(text, copy) => ({
            changes: [{ path: mode.value === 'duplicate' ? ['mcpServers', copy] : path, yaml: text }],
          })}
          onClose={close}
          onSaved={onSaved}
        />
      )}
      {reviewed && (
        <ReviewChange
          title={reviewed.title}
          edit={reviewed.edit}
          onClose={close}
          onSaved={reviewed.removes ? () => navigate(pathTo('servers')) : onSaved}
        />
      )}
    </div>
  )
}

import { useSignal } from '@preact/signals'
import type { ConfigEdit, ServerDefinitionView } from '../../../src/admin/contract.ts'
import { navigate } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { disabling, enabling, isDisabled } from './enabling.ts'
import { ReviewChange } from './review-change.tsx'
import { type ServerDraft, ServerFormDialog } from './server-form.tsx'

interface ServerEditorProps {
  readonly server: ServerDefinitionView
  onSaved(): void
}

/** The buttons that change a server in the configuration file. */
export function ServerEditor({ server: { name, yaml, definition, hash, editable }, onSaved }: ServerEditorProps) {
  const draft = useSignal<ServerDraft | undefined>(undefined)
  const review = useSignal<
    { readonly title: string; readonly edit: ConfigEdit; readonly removes?: boolean } | undefined
  >(undefined)
  const path = ['mcpServers', name]
  const close = () => {
    draft.value = undefined
    review.value = undefined
  }
  const reviewed = review.value
  const off = definition !== null && isDisabled(definition)
  const toggle = () => {
    const edit = (off ? enabling : disabling)(name, definition ?? {})
    review.value = { title: `${off ? 'Enable' : 'Disable'} ${name}`, edit }
  }
  const remove = () => {
    review.value = { title: `Remove ${name}`, edit: { changes: [{ path }] }, removes: true }
  }
  return (
    <div class="stack tight">
      {!editable.ok && <p class="quiet">{editable.reason}</p>}
      {definition && (
        <div class="row">
          <button
            type="button"
            class="button"
            onClick={() => (draft.value = { title: `Edit ${name}`, edited: { hash }, name, definition, yaml })}
          >
            Edit
          </button>
          <button
            type="button"
            class="button"
            onClick={() => (draft.value = { title: `Duplicate ${name}`, name: `${name}-2`, definition, yaml })}
          >
            Duplicate
          </button>
          <button type="button" class="button" onClick={toggle}>
            {off ? 'Enable' : 'Disable'}
          </button>
          <button type="button" class="button danger" onClick={remove}>
            Remove
          </button>
        </div>
      )}
      {draft.value && (
        <ServerFormDialog key={draft.value.title} draft={draft.value} onClose={close} onSaved={onSaved} />
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

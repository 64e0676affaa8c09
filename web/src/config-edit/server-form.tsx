import { useSignal } from '@preact/signals'
import type { AppliedEdit, ServerForm } from '../../../src/serve/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { Loaded, Note } from '../components/states.tsx'
import { EditDialog, NameField } from './edit-dialog.tsx'
import { type EditedValue, ValueEditor } from './value-editor.tsx'

export interface ServerDraft {
  readonly title: string
  /** The server to change. A new one, whose name can be edited, if omitted. */
  readonly edited?: string
  readonly name: string
  readonly definition: Readonly<Record<string, unknown>>
  readonly yaml?: string
  /** What has to be filled in. */
  readonly missing?: readonly string[]
}

interface ServerFormDialogProps {
  readonly draft: ServerDraft
  onClose(): void
  onSaved(applied: AppliedEdit): void
}

/** A dialog with a form for one server, new or changed. */
export function ServerFormDialog({ draft, onClose, onSaved }: ServerFormDialogProps) {
  const form = useResource(queries.serverForm, 'server form')
  const name = useSignal(draft.name)
  const value = useSignal<EditedValue>({ value: draft.definition })
  const id = name.value.trim()
  const change =
    draft.edited === undefined
      ? { path: ['mcpServers', id], isNew: true, ...value.value }
      : { path: ['mcpServers', draft.edited], ...value.value }
  return (
    <EditDialog
      title={draft.title}
      edit={id === '' ? undefined : { changes: [change] }}
      testable
      onClose={onClose}
      onSaved={onSaved}
    >
      {draft.missing && draft.missing.length > 0 && (
        <Note>
          <p>Fill in:</p>
          {draft.missing.map((one) => (
            <p key={one}>{one}</p>
          ))}
        </Note>
      )}
      {draft.edited === undefined && (
        <NameField label="Name of the server" value={name.value} onChange={(next) => (name.value = next)} />
      )}
      <Loaded resource={form} what="the form">
        {({ schema, common }: ServerForm) => (
          <ValueEditor
            title={draft.edited ?? 'Definition'}
            schema={schema}
            common={common}
            value={draft.definition}
            yaml={draft.yaml ?? `${JSON.stringify(draft.definition, null, 2)}\n`}
            onChange={(next) => (value.value = next)}
          />
        )}
      </Loaded>
      <p class="quiet small">
        Placeholders such as <code>&lt;secret …&gt;</code> keep a secret. New tokens and passwords are stored in private
        files, not in the configuration.
      </p>
    </EditDialog>
  )
}

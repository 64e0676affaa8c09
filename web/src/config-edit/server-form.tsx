import { useSignal } from '@preact/signals'
import type { AppliedEdit, ServerForm } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { Loaded, Note } from '../components/states.tsx'
import { EditDialog, NameField } from './edit-dialog.tsx'
import { type EditedValue, ValueEditor } from './value-editor.tsx'

export interface ServerDraft {
  readonly title: string
  /** What is changed. If omitted, the server is new, and its name can be edited. */
  readonly edited?: { readonly hash: string }
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
export function ServerFormDialog({ draft: initial, onClose, onSaved }: ServerFormDialogProps) {
  const form = useResource(queries.serverForm, 'server form')
  const filled = useSignal(initial)
  const name = useSignal(initial.name)
  const value = useSignal<EditedValue>({ value: initial.definition })
  const draft = filled.value
  const id = name.value.trim()
  const change = {
    path: ['mcpServers', id],
    ...(draft.edited ? { was: draft.edited.hash } : { isNew: true }),
    ...value.value,
  }
  const loadCurrent = async () => {
    const { definition, yaml, hash } = await queries.serverDefinition(id)(undefined)
    filled.value = { ...draft, edited: { hash }, definition: definition ?? {}, yaml }
    value.value = { value: definition ?? {} }
  }
  return (
    <EditDialog
      title={draft.title}
      edit={id === '' ? undefined : { changes: [change] }}
      fields={change}
      testable
      {...(draft.edited && { onLoadCurrent: loadCurrent })}
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
            key={draft.edited?.hash}
            title={draft.edited ? id : 'Definition'}
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

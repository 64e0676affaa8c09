import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { AppliedEdit, ConfigEdit, ServerTest } from '../../../src/serve/admin/contract.ts'
import { actions } from '../api/endpoints.ts'
import { Dialog } from '../components/dialog.tsx'
import { withNotice } from '../components/notices.tsx'
import { ReviewPanel } from './review-change.tsx'
import { ServerTestResult } from './server-test.tsx'

interface EntryEditorProps {
  readonly title: string
  /** The label of the text, such as `Definition (YAML)`. */
  readonly label: string
  readonly text?: string
  readonly placeholder?: string
  /** The label of the field for the name; without it, there is no such field. */
  readonly nameLabel?: string
  readonly name?: string
  readonly nameRequired?: boolean
  /** Whether the edit adds or changes servers, which can be tested. */
  readonly testable?: boolean
  readonly children?: ComponentChildren
  /** The edit that the text and the name stand for. */
  editOf(text: string, name: string): ConfigEdit
  onClose(): void
  onSaved(applied: AppliedEdit): void
}

/** A dialog to edit a part of the configuration as text: edit, test if it is a server, review, save. */
export function EntryEditor(props: EntryEditorProps) {
  const { title, label, placeholder, nameLabel, nameRequired, testable, children, editOf, onClose, onSaved } = props
  const text = useSignal(props.text ?? '')
  const name = useSignal(props.name ?? '')
  const reviewed = useSignal<ConfigEdit | undefined>(undefined)
  const tests = useSignal<readonly ServerTest[]>([])
  const testing = useSignal(false)
  const edit = () => editOf(text.value, name.value.trim())
  const test = async () => {
    if (testing.value) return
    testing.value = true
    tests.value = []
    const done = await withNotice(
      () => actions.testServers(edit()),
      (all) => (all.every(({ ok }) => ok) ? 'The test succeeded.' : 'The test failed.'),
    )
    tests.value = done ?? []
    testing.value = false
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    reviewed.value = edit()
  }
  const saved = (applied: AppliedEdit) => {
    onClose()
    onSaved(applied)
  }
  const incomplete = text.value.trim() === '' || (nameRequired && name.value.trim() === '')
  return (
    <Dialog title={title} onClose={onClose} wide>
      {reviewed.value ? (
        <ReviewPanel edit={reviewed.value} onBack={() => (reviewed.value = undefined)} onSaved={saved} />
      ) : (
        <form class="stack" onSubmit={submit}>
          <label class="stack tight">
            <span>{label}</span>
            <textarea
              class="input mono"
              rows={10}
              spellcheck={false}
              placeholder={placeholder}
              value={text.value}
              onInput={({ currentTarget }) => (text.value = currentTarget.value)}
            />
          </label>
          {nameLabel !== undefined && (
            <label class="stack tight">
              <span>{nameLabel}</span>
              <input
                class="input"
                autocomplete="off"
                value={name.value}
                onInput={({ currentTarget }) => (name.value = currentTarget.value)}
              />
            </label>
          )}
          {children}
          {tests.value.map((one) => (
            <ServerTestResult key={one.name} test={one} />
          ))}
          <div class="actions">
            {testable && (
              <button type="button" class="button" disabled={incomplete || testing.value} onClick={() => void test()}>
                {testing.value ? 'Testing…' : 'Test'}
              </button>
            )}
            <button type="submit" class="button primary" disabled={incomplete}>
              Review
            </button>
          </div>
        </form>
      )}
    </Dialog>
  )
}

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import type { AppliedEdit, ConfigEdit, ServerTest } from '../../../src/admin/contract.ts'
import { actions, queries } from '../api/endpoints.ts'
import { Dialog } from '../components/dialog.tsx'
import { withNotice } from '../components/notices.tsx'
import { navigate } from '../routing/location.ts'
import { pathTo } from '../routing/route.ts'
import { forgetUnsaved, mayDiscard } from '../routing/unsaved.ts'
import { questionOf, ReviewPanel } from './review-change.tsx'
import { ServerTestResult } from './server-test.tsx'

interface EditDialogProps {
  readonly title: string
  /** The edit that the fields stand for; undefined while they are incomplete. */
  readonly edit: ConfigEdit | undefined
  /** What the fields contain, also while they are incomplete. */
  readonly fields: unknown
  /** Whether the edit adds or changes servers, which can be tested. */
  readonly testable?: boolean
  /** The fields. */
  readonly children: ComponentChildren
  /** Fills the fields with the current values, after they have changed. */
  onLoadCurrent?(): Promise<void>
  onClose(): void
  onSaved(applied: AppliedEdit): void
}

/** A dialog to edit a part of the configuration: edit, test if it is a server, review, save. */
export function EditDialog({ title, edit, fields, testable, children, onLoadCurrent, ...events }: EditDialogProps) {
  const { onClose, onSaved } = events
  const reviewed = useSignal<ConfigEdit | undefined>(undefined)
  /** What the fields were filled with. */
  const filled = useRef<string>(undefined)
  filled.current ??= JSON.stringify(fields)
  const tests = useSignal<readonly ServerTest[]>([])
  const testing = useSignal(false)
  const tested = useSignal('')
  /** The results of the last test, unless the fields have changed since. */
  const current = () => (tested.value === JSON.stringify(edit) ? tests.value : [])
  const test = async () => {
    if (testing.value || !edit) return
    testing.value = true
    tests.value = []
    const done = await withNotice(() => confirmAndTest(edit), testMessage)
    tests.value = done ?? []
    tested.value = JSON.stringify(edit)
    testing.value = false
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    reviewed.value =
      edit &&
      withOAuth(
        edit,
        current().filter(({ lacksOAuth }) => lacksOAuth),
      )
  }
  const loadCurrent = async () => {
    await withNotice(
      async () => {
        await onLoadCurrent?.()
        filled.current = undefined
        reviewed.value = undefined
      },
      () => 'Loaded the current values.',
    )
  }
  const saved = (applied: AppliedEdit) => {
    const [server] = current().filter(({ needsSignIn }) => needsSignIn)
    forgetUnsaved()
    onClose()
    onSaved(applied)
    if (server) navigate(pathTo('servers', server.name))
  }
  return (
    <Dialog title={title} onClose={onClose} wide unsaved={JSON.stringify(fields) !== filled.current}>
      {reviewed.value && (
        <ReviewPanel
          edit={reviewed.value}
          onBack={() => (reviewed.value = undefined)}
          onLoadCurrent={onLoadCurrent && (() => void loadCurrent())}
          onSaved={saved}
        />
      )}
      {/* The fields keep what was typed while the change is reviewed. */}
      <div hidden={reviewed.value !== undefined}>
        <form class="stack" onSubmit={submit}>
          {children}
          {current().map((one) => (
            <ServerTestResult key={one.name} test={one} />
          ))}
          <div class="actions">
            <button type="button" class="button" onClick={() => mayDiscard() && onClose()}>
              Cancel
            </button>
            {testable && (
              <button type="button" class="button" disabled={!edit || testing.value} onClick={() => void test()}>
                {testing.value ? 'Testing…' : 'Test'}
              </button>
            )}
            <button type="submit" class="button primary" disabled={!edit}>
              Review
            </button>
          </div>
        </form>
      </div>
    </Dialog>
  )
}

/** Tests the servers, unless a person does not let them have the values that the edit refers to. */
async function confirmAndTest(edit: ConfigEdit): Promise<readonly ServerTest[]> {
  const proposal = await queries.preview(edit)(undefined)
  if (proposal.references.length > 0 && !window.confirm(`${questionOf(proposal)}?`)) return []
  return actions.testServers({ ...edit, references: proposal.references.map(({ reference }) => reference) })
}

const testMessage = (tests: readonly ServerTest[]): string => {
  if (tests.length === 0) return 'Not tested.'
  if (tests.every(({ ok }) => ok)) return 'The test succeeded.'
  return tests.every(({ ok, needsSignIn }) => ok || needsSignIn) ? 'A sign-in is required.' : 'The test failed.'
}

/** The edit with OAuth for servers that require it. */
function withOAuth(edit: ConfigEdit, servers: readonly ServerTest[]): ConfigEdit {
  const names = servers.map(({ name }) => name)
  if (names.length === 0) return edit
  if (edit.add) return { add: { ...edit.add, oauth: names } }
  const changes = names.map((name) => ({ path: ['mcpServers', name, 'auth'], value: { type: 'oauth' } }))
  return edit.changes ? { changes: [...edit.changes, ...changes] } : edit
}

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly placeholder?: string
  onChange(value: string): void
}

/** A field for text of several lines. */
export function TextArea({ label, value, placeholder, onChange }: TextFieldProps) {
  return (
    <label class="stack tight">
      <span>{label}</span>
      <textarea
        class="input mono"
        rows={10}
        spellcheck={false}
        placeholder={placeholder}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  )
}

/** A field for a name. */
export function NameField({ label, value, onChange }: TextFieldProps) {
  return (
    <label class="stack tight">
      <span>{label}</span>
      <input
        class="input"
        autocomplete="off"
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  )
}

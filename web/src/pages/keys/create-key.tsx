import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { IssuedKeyView } from '../../../../src/admin/contract.ts'
import { actions } from '../../api/endpoints.ts'
import { asApiError } from '../../api/request.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { mayDiscard } from '../../routing/unsaved.ts'

interface CreateKeyProps {
  /** The agents in the configuration. */
  readonly agents: readonly string[]
  /** The endpoints in the configuration. */
  readonly endpoints: readonly string[]
  onClose(): void
  onCreated(issued: IssuedKeyView): void
}

const dayMs = 86_400_000
const lifetimes = { '7 days': 7, '30 days': 30, '90 days': 90, '1 year': 365, never: 0 } as const

/** A dialog with the form for a new key. */
export function CreateKey({ agents, endpoints, onClose, onCreated }: CreateKeyProps) {
  const id = useId()
  const error = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const changed = useSignal(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (busy.value) return
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const days = Number(form.get('days'))
    const chosen = form.getAll('endpoint').map(String)
    busy.value = true
    try {
      const issued = await actions.createKey({
        id: String(form.get('id') ?? '').trim(),
        agents: form.getAll('agent').map(String),
        admin: form.get('admin') !== null,
        ...(chosen.length > 0 && { endpoints: chosen }),
        ...(days > 0 && { expiresInMs: days * dayMs }),
      })
      onCreated(issued)
    } catch (thrown) {
      error.value = asApiError(thrown).message
    }
    busy.value = false
  }
  return (
    <Dialog title="Create a key" onClose={onClose} unsaved={changed.value}>
      <form class="stack" onSubmit={submit} onInput={() => (changed.value = true)}>
        <label class="stack tight">
          <span>Name</span>
          <input
            class="input"
            name="id"
            required
            maxLength={64}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={error.value !== undefined}
            aria-describedby={error.value === undefined ? undefined : id}
            placeholder="ci"
          />
        </label>
        {error.value !== undefined && (
          <p id={id} class="problem" role="alert">
            {error.value}
          </p>
        )}
        <fieldset class="stack tight">
          <legend>May act as</legend>
          {[...agents, '*'].map((agent) => (
            <label key={agent} class="row">
              <input type="checkbox" name="agent" value={agent} /> {agent === '*' ? 'all agents' : agent}
            </label>
          ))}
          <p class="quiet small">With none, it acts as the default agent.</p>
        </fieldset>
        {endpoints.length > 0 && (
          <fieldset class="stack tight">
            <legend>May connect to</legend>
            {endpoints.map((name) => (
              <label key={name} class="row">
                <input type="checkbox" name="endpoint" value={name} /> {name}
              </label>
            ))}
            <p class="quiet small">With none, it may connect to every endpoint.</p>
          </fieldset>
        )}
        <label class="row">
          <input type="checkbox" name="admin" /> Admin: sees everything and may change the configuration, servers and
          keys
        </label>
        <label class="stack tight">
          <span>Expires after</span>
          <select class="input" name="days" defaultValue="90">
            {Object.entries(lifetimes).map(([text, days]) => (
              <option key={text} value={days} selected={days === 90}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <div class="actions">
          <Button onClick={() => mayDiscard() && onClose()}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy.value}>
            {busy.value ? 'Creating…' : 'Create'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

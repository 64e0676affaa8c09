import { useSignal } from '@preact/signals'
import type { IssuedKeyView, KeyView } from '../../../../src/serve/admin/contract.ts'
import { actions } from '../../api/endpoints.ts'
import { Dialog } from '../../components/dialog.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Note } from '../../components/states.tsx'

interface RotateKeyProps {
  readonly apiKey: KeyView
  onClose(): void
  onRotated(issued: IssuedKeyView): void
}

const hourMs = 3_600_000
const times = { 'It ends now': 0, '1 hour': hourMs, '1 day': 24 * hourMs, '7 days': 168 * hourMs } as const

/** A dialog that asks how long the old secret stays valid. */
export function RotateKey({ apiKey: { id, previous }, onClose, onRotated }: RotateKeyProps) {
  const keepOldMs = useSignal<number>(times['1 day'])
  const busy = useSignal(false)
  const rotate = async (event: SubmitEvent) => {
    event.preventDefault()
    if (busy.value) return
    busy.value = true
    const issued = await withNotice(
      () => actions.rotateKey(id, keepOldMs.value),
      () => `Rotated ${id}.`,
    )
    busy.value = false
    if (issued) onRotated(issued)
  }
  return (
    <Dialog title={`Rotate ${id}`} onClose={onClose}>
      <form class="stack" onSubmit={rotate}>
        <p>The key gets a new secret with the same rights. Both work for the time that you choose.</p>
        {previous && (
          <Note tone="warn">
            <p>The secret from before the last rotation is still valid. It ends now.</p>
          </Note>
        )}
        <label class="stack tight">
          <span>The old secret stays valid for</span>
          <select
            class="input"
            value={keepOldMs.value}
            onChange={({ currentTarget }) => (keepOldMs.value = Number(currentTarget.value))}
          >
            {Object.entries(times).map(([text, ms]) => (
              <option key={text} value={ms}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy.value}>
            {busy.value ? 'Rotating…' : 'Rotate'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

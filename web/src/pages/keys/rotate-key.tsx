import { useSignal } from '@preact/signals'
import type { IssuedKeyView, KeyView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { ApiError } from '../../api/request.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Note } from '../../components/states.tsx'

interface RotateKeyProps {
  readonly apiKey: KeyView
  onClose(): void
  onRotated(issued: IssuedKeyView): void
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const times = {
  'ends now': 0,
  'valid for 1 hour': hourMs,
  'valid for 1 day': dayMs,
  'valid for 7 days': 7 * dayMs,
} as const

/** A dialog that asks how long the old secret stays valid. */
export function RotateKey({ apiKey, onClose, onRotated }: RotateKeyProps) {
  const key = useSignal(apiKey)
  const { id, previous } = key.value
  const keepOldMs = useSignal<number>(dayMs)
  const busy = useSignal(false)
  const reload = async () => {
    const { keys } = await queries.keys(undefined)
    key.value = keys.find((one) => one.id === id && one.source === apiKey.source) ?? key.value
  }
  const rotate = async (event: SubmitEvent) => {
    event.preventDefault()
    if (busy.value) return
    busy.value = true
    const issued = await withNotice(
      async () => {
        try {
          return await actions.rotateKey(key.value, keepOldMs.value)
        } catch (thrown) {
          // Someone else has rotated it: show its state now, and let the user decide again.
          if (thrown instanceof ApiError && thrown.code === 'CONFLICT') await reload()
          throw thrown
        }
      },
      () => `Rotated ${id}.`,
    )
    busy.value = false
    if (issued) onRotated(issued)
  }
  return (
    <Dialog title={`Rotate ${id}`} onClose={onClose}>
      <form class="stack" onSubmit={rotate}>
        <p>The key gets a new secret with the same rights. Choose how long the old one stays valid.</p>
        {previous && (
          <Note tone="warn">
            <p>The secret from the previous rotation is still valid. Rotating ends it immediately.</p>
          </Note>
        )}
        <label class="stack tight">
          <span>Old secret</span>
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
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy.value}>
            {busy.value ? 'Rotating…' : 'Rotate'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

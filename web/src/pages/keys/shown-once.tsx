import type { IssuedKeyView } from '../../../../src/admin/contract.ts'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { RelativeTime } from '../../components/times.tsx'

/** A dialog with a new secret. Only its button closes it, because the secret is never shown again. */
export function ShownOnce({ issued, onClose }: { readonly issued: IssuedKeyView; onClose(): void }) {
  const { secret, key } = issued
  return (
    <Dialog
      title={`The key ${key.id}`}
      onClose={onClose}
      keepOpen={`Have you copied the key ${key.id}? It is not shown again.`}
    >
      <p>
        <strong>Copy it now: it is shown only once.</strong> Toolway stores only its hash.
      </p>
      <CodeBlock text={secret} label={`Secret of ${key.id}`} wrap />
      {key.previous && (
        <p>
          The old secret expires <RelativeTime at={key.previous.until} />.
        </p>
      )}
      <div class="actions">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}

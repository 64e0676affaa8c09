import { useSignal } from '@preact/signals'
import { adminRequired, isAdmin } from '../api/session.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import type { IconName } from './icon.tsx'

interface ActionButtonProps {
  readonly name: string
  readonly icon?: IconName
  /** The label for screen readers, if the name alone says too little. */
  readonly label?: string
  readonly kind?: 'primary' | 'danger' | 'danger tiny' | ''
  /** Set if the action needs no admin rights. */
  readonly everyone?: boolean
  readonly disabled?: boolean
  /** The title and text of a confirmation dialog, if one is needed. */
  readonly confirm?: { readonly title: string; readonly text: string } | undefined
  run(): Promise<unknown>
}

/**
 * A button for an action. It requires admin rights, asks for confirmation if needed, and is disabled while the action
 * is running.
 */
export function ActionButton({ name, label, icon, kind = '', everyone = false, ...rest }: ActionButtonProps) {
  const { disabled = false, confirm, run } = rest
  const confirming = useSignal(false)
  const busy = useSignal(false)
  const allowed = everyone || isAdmin.value
  const perform = async () => {
    busy.value = true
    await run()
    busy.value = false
  }
  const onClick = () => {
    if (!allowed || disabled || busy.value) return
    if (confirm) confirming.value = true
    else void perform()
  }
  return (
    <>
      <Button
        kind={kind}
        icon={icon}
        aria-label={label}
        aria-disabled={!allowed || disabled || busy.value}
        title={allowed ? undefined : adminRequired}
        onClick={onClick}
      >
        {busy.value ? `${name}…` : name}
      </Button>
      {confirm && confirming.value && (
        <Dialog title={confirm.title} onClose={() => (confirming.value = false)}>
          <p>{confirm.text}</p>
          <form method="dialog" class="actions">
            <Button type="submit">Cancel</Button>
            <Button kind={kind || 'primary'} type="submit" onClick={() => void perform()}>
              {name}
            </Button>
          </form>
        </Dialog>
      )}
    </>
  )
}

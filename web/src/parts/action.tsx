import { useSignal } from '@preact/signals'
import { adminRequired, isAdmin } from '../api/session.ts'
import { Dialog } from './dialog.tsx'
import { Icon, type IconName } from './icon.tsx'

interface ActionProps {
  readonly name: string
  readonly icon?: IconName
  readonly kind?: 'primary' | 'danger' | ''
  /** Works without admin rights. */
  readonly free?: boolean
  /** Confirmation dialog. */
  readonly confirm?: { readonly title: string; readonly text: string } | undefined
  run(): Promise<unknown>
}

/** A button for an action: requires admin rights, asks for confirmation if needed, and is disabled while it runs. */
export function Action({ name, icon, kind = '', free = false, confirm, run }: ActionProps) {
  const asking = useSignal(false)
  const busy = useSignal(false)
  const allowed = free || isAdmin.value
  const work = async () => {
    busy.value = true
    await run()
    busy.value = false
  }
  const press = () => {
    if (!allowed || busy.value) return
    if (confirm) asking.value = true
    else void work()
  }
  return (
    <>
      <button
        type="button"
        class={`button ${kind}`}
        aria-disabled={!allowed || busy.value}
        title={allowed ? undefined : adminRequired}
        onClick={press}
      >
        {icon && <Icon name={icon} size={14} />} {busy.value ? `${name}…` : name}
      </button>
      {confirm && asking.value && (
        <Dialog title={confirm.title} onClose={() => (asking.value = false)}>
          <p>{confirm.text}</p>
          <form method="dialog" class="actions">
            <button type="submit" class="button">
              Cancel
            </button>
            <button type="submit" class={`button ${kind || 'primary'}`} onClick={() => void work()}>
              {name}
            </button>
          </form>
        </Dialog>
      )}
    </>
  )
}

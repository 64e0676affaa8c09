import { useSignal } from '@preact/signals'
import { Icon } from './icon.tsx'

interface CopyButtonProps {
  readonly text: string
  /** The tooltip and label for screen readers, such as `Copy address`. */
  readonly label: string
}

export function CopyButton({ text, label }: CopyButtonProps) {
  const state = useSignal<'ready' | 'done' | 'failed'>('ready')
  const copy = async ({ currentTarget }: { readonly currentTarget: HTMLElement }) => {
    state.value = (await writeClipboard(text)) || copySelected(text, currentTarget) ? 'done' : 'failed'
    setTimeout(() => {
      state.value = 'ready'
    }, 2000)
  }
  const labels = { ready: label, done: 'Copied', failed: 'Could not copy. Select the text and copy it manually.' }
  return (
    <button type="button" class="button icon tiny" title={labels[state.value]} onClick={copy}>
      <Icon name={state.value === 'done' ? 'check' : state.value === 'failed' ? 'warning' : 'copy'} size={14} />
      <span class="hidden" aria-live="polite">
        {labels[state.value]}
      </span>
    </button>
  )
}

/** Browsers have this interface only over HTTPS and on localhost. */
async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** Copies a selected text, which works over plain HTTP, too. It is beside the button: a dialog blocks the page around it. */
function copySelected(text: string, button: HTMLElement): boolean {
  const field = document.createElement('textarea')
  field.className = 'hidden'
  field.readOnly = true
  field.value = text
  button.after(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  button.focus()
  return copied
}

import { useSignal } from '@preact/signals'
import { Icon } from './icon.tsx'

interface CopyButtonProps {
  readonly text: string
  /** The tooltip and label for screen readers, such as `Copy address`. */
  readonly label: string
}

export function CopyButton({ text, label }: CopyButtonProps) {
  const state = useSignal<'ready' | 'done' | 'failed'>('ready')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      state.value = 'done'
    } catch {
      // Browsers allow access to the clipboard only over HTTPS and on localhost, so copying may fail.
      state.value = 'failed'
    }
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

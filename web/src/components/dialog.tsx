import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { mayDiscard, useUnsaved } from '../routing/unsaved.ts'

interface DialogProps {
  readonly title: string
  readonly wide?: boolean
  /** Whether it has unsaved input. Then it asks before it closes. */
  readonly unsaved?: boolean
  /** The question before leaving the page, if only a button in the dialog may close it. */
  readonly keepOpen?: string
  onClose(): void
  readonly children: ComponentChildren
}

/** A modal dialog. Escape or a click outside closes it. When it closes, the focus returns to where it was before. */
export function Dialog({ title, unsaved = false, keepOpen, wide = false, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  const shown = useRef(true)
  useUnsaved(unsaved || keepOpen !== undefined, keepOpen)
  const mayClose = () => keepOpen === undefined && (!unsaved || mayDiscard())
  // Cleaned up while the dialog is still in the document, unlike other effects.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => {
      // Its owner removes it. Close it first to return the focus. The later close event is ignored.
      shown.current = false
      dialog?.close()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onKeyDown={(event) => {
        // Chromium does not let a page cancel the second Escape in a row, but its key event.
        if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing) return
        if ((keepOpen === undefined && !unsaved) || event.target instanceof HTMLSelectElement) return
        event.preventDefault()
        if (mayClose()) onClose()
      }}
      onCancel={(event) => {
        // File inputs have such an event, too. If it cannot be cancelled, the dialog closes, and that asks.
        if (event.target !== element.current || !event.cancelable) return
        event.preventDefault()
        if (mayClose()) onClose()
      }}
      onClose={() => {
        if (!shown.current) return
        if (mayClose()) onClose()
        else element.current?.showModal()
      }}
      onClick={(event) => event.target === element.current && mayClose() && onClose()}
    >
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

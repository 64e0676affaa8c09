import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly wide?: boolean
  /** Whether a click outside leaves the dialog open, so that nothing in it is lost by accident. */
  readonly keepOpen?: boolean
  onClose(): void
  readonly children: ComponentChildren
}

/** A modal dialog. Escape or a click outside closes it. When it closes, the focus returns to where it was before. */
export function Dialog({ title, keepOpen = false, wide = false, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  const shown = useRef(true)
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
    // biome-ignore lint/a11y/useKeyWithClickEvents: browsers close dialogs on Escape
    <dialog
      ref={element}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onClose={() => shown.current && onClose()}
      onClick={(event) => event.target === element.current && !keepOpen && element.current?.close()}
    >
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

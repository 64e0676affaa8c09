import { useLayoutEffect } from 'preact/hooks'

/** The questions to ask before leaving, one for each form with unsaved input on the page. */
const questions = new Map<symbol, string>()

const discardQuestion = 'Discard your changes? They are not saved.'

/** While `unsaved` is true, everything that would discard the form asks first. */
export function useUnsaved(unsaved: boolean, question = discardQuestion): void {
  // Runs at once, unlike other effects: the next event may already leave the page.
  useLayoutEffect(() => {
    if (!unsaved) return
    const id = Symbol()
    questions.set(id, question)
    return () => void questions.delete(id)
  }, [unsaved, question])
}

export const hasUnsaved = (): boolean => questions.size > 0

/** Whether forms on the page may be removed. Asks if they have unsaved input. */
export function mayDiscard(): boolean {
  const question = [...questions.values()].at(-1)
  return question === undefined || window.confirm(question)
}

/** Call it after saving, before the form is removed. */
export const forgetUnsaved = (): void => questions.clear()

/** Asks before the tab is closed or reloaded. The browser chooses the text. */
export function guardUnload(): void {
  window.addEventListener('beforeunload', (event) => {
    if (hasUnsaved()) event.preventDefault()
  })
}

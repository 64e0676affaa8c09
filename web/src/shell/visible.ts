import { signal } from '@preact/signals'

/** Hidden tabs do not poll. */
export const isVisible = signal(!document.hidden)

document.addEventListener('visibilitychange', () => {
  isVisible.value = !document.hidden
})

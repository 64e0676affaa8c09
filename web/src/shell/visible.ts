import { signal } from '@preact/signals'

/** Whether anybody can see the page: hidden tabs ask for nothing. */
export const isVisible = signal(!document.hidden)

document.addEventListener('visibilitychange', () => {
  isVisible.value = !document.hidden
})

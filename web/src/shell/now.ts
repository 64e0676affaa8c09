import { signal } from '@preact/signals'

/** The time, once a second, for everything that says how long ago something was. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)

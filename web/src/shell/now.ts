import { signal } from '@preact/signals'

/** The current time, updated every second, so that relative times stay up to date. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)

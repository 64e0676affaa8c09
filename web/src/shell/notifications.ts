import { effect, signal } from '@preact/signals'
import { liveInbox } from '../api/live.ts'

type NotificationState = 'on' | 'off' | 'denied' | 'unsupported'

const storageKey = 'toolway.notifications'

function stored(): boolean {
  try {
    return localStorage.getItem(storageKey) === 'on'
  } catch {
    return false
  }
}

function initialState(): NotificationState {
  if (!('Notification' in window)) return 'unsupported'
  if (Notification.permission === 'denied') return 'denied'
  return Notification.permission === 'granted' && stored() ? 'on' : 'off'
}

/** Whether new inbox items are shown as browser notifications. Off until the operator turns it on. */
export const notifications = signal<NotificationState>(initialState())

export async function setNotifications(on: boolean): Promise<void> {
  const permission = on ? await Notification.requestPermission() : Notification.permission
  notifications.value = permission === 'denied' ? 'denied' : on && permission === 'granted' ? 'on' : 'off'
  try {
    localStorage.setItem(storageKey, notifications.value === 'on' ? 'on' : 'off')
  } catch {
    // If storage is unavailable, the choice lasts until the page is closed.
  }
}

let known: ReadonlySet<string> | undefined

// Items that are there when the page opens are not news.
effect(() => {
  const items = liveInbox.value?.items
  const before = known
  known = items && new Set(items.map(({ id }) => id))
  if (!items || !before || notifications.peek() !== 'on' || !document.hidden) return
  for (const { id, title, detail } of items.filter((item) => !before.has(item.id)).slice(0, 3)) {
    new Notification(title, { body: detail, tag: id })
  }
})

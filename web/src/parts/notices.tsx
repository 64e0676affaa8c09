import { signal } from '@preact/signals'
import { ApiError } from '../api/request.ts'
import { Icon } from './icon.tsx'

interface Notice {
  readonly id: number
  readonly text: string
  readonly bad: boolean
}

const notices = signal<readonly Notice[]>([])
let count = 0

function notify(text: string, bad = false): void {
  const id = ++count
  notices.value = [...notices.value.slice(-3), { id, text, bad }]
  setTimeout(() => dismiss(id), bad ? 12_000 : 5000)
}

const dismiss = (id: number) => {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

/** Runs an action and shows a notice with its result or error. */
export async function attempt<T>(work: () => Promise<T>, done: (value: T) => string): Promise<T | undefined> {
  try {
    const value = await work()
    notify(done(value))
    return value
  } catch (thrown) {
    notify(thrown instanceof ApiError ? thrown.message : String(thrown), true)
    return undefined
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, bad }) => (
        <p key={id}>
          <span class={bad ? 'tone-bad' : 'tone-ok'}>
            <Icon name={bad ? 'warning' : 'check'} />
          </span>
          <span>{text}</span>
          <button type="button" class="button plain icon tiny" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" size={12} />
          </button>
        </p>
      ))}
    </div>
  )
}

import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { asApiError } from '../api/request.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'

interface Notice {
  readonly id: number
  readonly text: string
  readonly isError: boolean
}

const notices = signal<readonly Notice[]>([])
let lastId = 0

function notify(text: string, isError = false): void {
  const id = ++lastId
  notices.value = [...notices.value.slice(-3), { id, text, isError }]
  setTimeout(() => dismiss(id), isError ? 12_000 : 5000)
}

const dismiss = (id: number) => {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

/** Runs an action and shows a notice with its result or error. */
export async function withNotice<T>(action: () => Promise<T>, message: (value: T) => string): Promise<T | undefined> {
  try {
    const value = await action()
    notify(message(value))
    return value
  } catch (thrown) {
    notify(asApiError(thrown).message, true)
    return undefined
  }
}

export function Notices() {
  // The next user must not see them.
  useLayoutEffect(
    () => () => {
      notices.value = []
    },
    [],
  )
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, isError }) => (
        <p key={id}>
          <span class={isError ? 'tone-bad' : 'tone-ok'}>
            <Icon name={isError ? 'warning' : 'check'} />
          </span>
          <span>{text}</span>
          <Button kind="plain icon tiny" icon="close" aria-label="Dismiss" onClick={() => dismiss(id)} />
        </p>
      ))}
    </div>
  )
}

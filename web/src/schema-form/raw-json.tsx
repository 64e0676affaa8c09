import { useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import { jsonFrom } from './typed-text.ts'

interface RawProps {
  readonly value: unknown
  onChange(value: unknown, text: string): void
  onBroken(broken: boolean): void
}

export function RawJson({ value, onChange, onBroken }: RawProps) {
  const id = useId()
  const text = useSignal(JSON.stringify(value ?? {}, null, 2))
  const read = jsonFrom(text.value)
  const broken = 'error' in read
  // When the editor closes, the last valid value remains.
  useEffect(() => () => onBroken(false), [])
  const typed = (next: string) => {
    text.value = next
    const now = jsonFrom(next)
    onBroken('error' in now)
    if ('value' in now) onChange(now.value, next)
  }
  return (
    <div class="stack tight">
      <textarea
        class="input mono raw"
        aria-label="Arguments as JSON"
        aria-invalid={broken}
        aria-describedby={broken ? id : undefined}
        rows={Math.min(24, Math.max(8, text.value.split('\n').length + 1))}
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => typed(currentTarget.value)}
      />
      {broken && (
        <p id={id} class="problem">
          Invalid JSON: {read.error}
        </p>
      )}
    </div>
  )
}

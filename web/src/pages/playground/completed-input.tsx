import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type CompletionRequest, complete } from '../../api/playground.ts'
import { ForeignText } from '../../components/foreign-text.tsx'
import { memberOf } from '../../schema-form/path.ts'

interface CompletedInputProps extends Omit<CompletionRequest, 'argument' | 'context'> {
  readonly argument: string
  readonly description: string
  readonly required: boolean
  /** The values of all arguments. */
  readonly values: Readonly<Record<string, string>>
  onChange(value: string): void
}

const delayMs = 200

/** A text field with the values that the server suggests. */
export function CompletedInput({ kind, name, argument, description, required, values, onChange }: CompletedInputProps) {
  const id = useId()
  const options = useSignal<readonly string[]>([])
  const pending = useRef<AbortController>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      pending.current?.abort()
    },
    [],
  )
  const suggest = (value: string) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(async () => {
      pending.current?.abort()
      const own = new AbortController()
      pending.current = own
      const { [argument]: _, ...others } = values
      const context = Object.fromEntries(Object.entries(others).filter(([, text]) => text !== ''))
      try {
        const found = await complete({ kind, name, argument: { name: argument, value }, context }, own.signal)
        options.value = found.values
      } catch {
        // Suggestions are optional: many servers offer none.
        if (!own.signal.aborted) options.value = []
      }
    }, delayMs)
  }
  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>{argument}</label>
        {required && <span class="required">required</span>}
      </div>
      <ForeignText text={description} class="field-note" />
      <input
        id={id}
        class="input"
        dir="auto"
        type="text"
        list={`${id}-list`}
        autocomplete="off"
        aria-required={required}
        value={memberOf(values, argument) ?? ''}
        onFocus={({ currentTarget }) => suggest(currentTarget.value)}
        onInput={({ currentTarget }) => {
          onChange(currentTarget.value)
          suggest(currentTarget.value)
        }}
      />
      <datalist id={`${id}-list`}>
        {options.value.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </div>
  )
}

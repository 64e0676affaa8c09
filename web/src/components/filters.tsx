import type { Ref } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { fromLocalInput, toLocalInput } from '../format/time.ts'
import { query, setQuery } from '../routing/location.ts'
import { parseTime } from '../routing/time-range.ts'
import { Icon } from './icon.tsx'
import { SelectField, type SelectOption } from './select-field.tsx'

interface QueryInput {
  readonly ref: Ref<HTMLInputElement>
  readonly defaultValue: string
  onInput(event: { readonly currentTarget: HTMLInputElement }): void
}

/** The state of a text field. Its value is stored in the address after a short delay. */
function useQueryInput(name: string): QueryInput {
  const ref = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const value = query.value.get(name) ?? ''
  useEffect(() => {
    // While the user is typing, the field is newer than the address, so do not overwrite it.
    if (ref.current && document.activeElement !== ref.current) ref.current.value = value
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  return {
    ref,
    defaultValue: value,
    onInput: ({ currentTarget }) => {
      clearTimeout(timer.current)
      timer.current = setTimeout(() => setQuery({ [name]: currentTarget.value.trim() }), 200)
    },
  }
}

/** The page's search field. The key `/` focuses it. */
export function SearchField({ label, name = 'q' }: { readonly label: string; readonly name?: string }) {
  const input = useQueryInput(name)
  return (
    <div class="search">
      <Icon name="search" />
      <input {...input} class="input" type="search" aria-label={label} placeholder={label} data-search />
      <span class="key" aria-hidden="true">
        /
      </span>
    </div>
  )
}

interface TextFilterProps {
  readonly label: string
  readonly name: string
  readonly placeholder: string
}

/** A filter by text, in which `*` is a wildcard. */
export function TextFilter({ label, name, placeholder }: TextFilterProps) {
  const input = useQueryInput(name)
  return (
    <label class="filter">
      <span>{label}</span>
      <input {...input} class="input" type="text" placeholder={placeholder} autocomplete="off" spellcheck={false} />
    </label>
  )
}

/** A filter by time, in the user's time zone. */
export function TimeFilter({ label, name }: { readonly label: string; readonly name: string }) {
  const at = parseTime(query.value.get(name))
  const onChange = (text: string) => {
    const time = fromLocalInput(text)
    setQuery({ [name]: time === undefined ? undefined : new Date(time).toISOString() })
  }
  return (
    <label class="filter time-filter">
      <span>{label}</span>
      <input
        class="input"
        type="datetime-local"
        value={at === undefined ? '' : toLocalInput(at)}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  )
}

interface SelectFilterProps {
  readonly label: string
  readonly name: string
  readonly options: readonly SelectOption[]
  /** The label for the option that does not filter. */
  readonly all: string
}

export const SelectFilter = ({ label, name, options, all }: SelectFilterProps) => (
  <SelectField
    label={label}
    value={query.value.get(name) ?? ''}
    options={[['', all], ...options]}
    onChange={(value) => setQuery({ [name]: value })}
  />
)

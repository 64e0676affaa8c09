/** A value, or a value and what is shown for it. */
export type SelectOption = string | readonly [value: string, text: string]

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  readonly options: readonly SelectOption[]
  readonly disabled?: boolean
  /** Returns false if the value stays as it was. */
  onChange(value: string): unknown
}

/** A select with its label. A value that is no longer an option is shown all the same. */
export function SelectField({ label, value, options, disabled, onChange }: SelectFieldProps) {
  const pairs = options.map((option) => (typeof option === 'string' ? ([option, option] as const) : option))
  const isKnown = pairs.some(([one]) => one === value)
  return (
    <label class="filter">
      <span>{label}</span>
      <select
        class="input"
        value={value}
        disabled={disabled}
        onChange={({ currentTarget }) => {
          if (onChange(currentTarget.value) === false) currentTarget.value = value
        }}
      >
        {(isKnown ? pairs : [[value, value] as const, ...pairs]).map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

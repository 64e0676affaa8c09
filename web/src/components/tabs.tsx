import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface TabsProps<Name extends string> {
  readonly label: string
  readonly names: Readonly<Record<Name, string>>
  readonly value: Name
  onChange(name: Name): void
  readonly children: ComponentChildren
}

/** Tabs with arrow key navigation, as the ARIA pattern requires. */
export function Tabs<Name extends string>({ label, names, value, onChange, children }: TabsProps<Name>) {
  const id = useId()
  const keys = Object.keys(names) as Name[]
  const choose = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = keys[(keys.indexOf(value) + step + keys.length) % keys.length] as Name
    onChange(next)
    document.getElementById(`${id}-${next}`)?.focus()
  }
  return (
    <div class="stack">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={choose}>
        {keys.map((name) => (
          <button
            key={name}
            id={`${id}-${name}`}
            type="button"
            role="tab"
            aria-selected={name === value}
            aria-controls={`${id}-panel`}
            tabIndex={name === value ? 0 : -1}
            onClick={() => onChange(name)}
          >
            {names[name]}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${value}`} class="stack">
        {children}
      </div>
    </div>
  )
}

import { useSignal } from '@preact/signals'
import { Tabs } from '../parts/tabs.tsx'
import type { Problem } from './check.ts'
import { fieldOf } from './field.ts'
import { FormField } from './form-field.tsx'
import { Members } from './object-field.tsx'
import type { Schema } from './schema.ts'
import './schema-form.css'
import { useEffect, useId } from 'preact/hooks'
import { jsonFrom } from './typed-text.ts'

interface EditorProps {
  readonly schema: Schema
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** `text` is given if the value was typed as JSON: it may contain numbers that JavaScript rounds. */
  onChange(value: unknown, text?: string): void
  /** Reports whether the JSON is invalid at the moment and cannot be sent. */
  onBroken(broken: boolean): void
}

const names = { form: 'Form', json: 'JSON' } as const

/** Edits the arguments of a tool, as a form generated from its schema or as JSON. */
export function ArgumentEditor({ schema, value, problems, onChange, onBroken }: EditorProps) {
  const view = useSignal<keyof typeof names>('form')
  const show = (name: keyof typeof names) => {
    if (name === view.value) return
    view.value = name
    // Send what is shown: the other view shows the parsed value, not the text.
    onChange(value)
  }
  return (
    <Tabs label="Argument editor" names={names} value={view.value} onChange={show}>
      {view.value === 'json' ? (
        <RawJson value={value} onChange={onChange} onBroken={onBroken} />
      ) : (
        <Form schema={schema} value={value} problems={problems} onChange={onChange} />
      )}
    </Tabs>
  )
}

function Form({ schema, value, problems, onChange }: Omit<EditorProps, 'onBroken'>) {
  const field = fieldOf(schema, schema)
  const place = {
    label: 'arguments',
    schema,
    root: schema,
    required: true,
    value,
    path: [],
    problems,
    depth: 0,
    onChange,
  }
  if (field.kind !== 'object') return <FormField {...place} />
  if (field.properties.length === 0 && field.others === undefined)
    return <p class="quiet">This tool takes no arguments.</p>
  return (
    <div class="form">
      <Members {...place} field={field} nest={(props) => <FormField {...props} />} />
    </div>
  )
}

interface RawProps {
  readonly value: unknown
  onChange(value: unknown, text: string): void
  onBroken(broken: boolean): void
}

function RawJson({ value, onChange, onBroken }: RawProps) {
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

import { useSignal } from '@preact/signals'
import { Tabs } from '../components/tabs.tsx'
import { fieldOf } from './field.ts'
import { FormField } from './form-field.tsx'
import { Members } from './object-field.tsx'
import type { Problem } from './problems.ts'
import type { Schema } from './schema.ts'
import './schema-form.css'
import { useEffect, useId } from 'preact/hooks'
import { parseJson } from './parse-input.ts'

interface EditorProps {
  readonly schema: Schema
  readonly value: unknown
  readonly problems?: readonly Problem[]
  /** Whether properties are labelled with their titles. */
  readonly titled?: boolean
  /**
   * `text` is given if the value was typed as JSON, because the JSON may contain numbers that JavaScript would round.
   */
  onChange(value: unknown, text?: string): void
  /** Reports whether the JSON is currently invalid, so that it cannot be sent. */
  onInvalidJson(broken: boolean): void
}

const names = { form: 'Form', json: 'JSON' } as const

/** Edits a tool's arguments, as a form generated from its schema or as JSON. */
export function ArgumentEditor({ onInvalidJson, ...form }: EditorProps) {
  const { value, onChange } = form
  const view = useSignal<keyof typeof names>('form')
  const switchView = (name: keyof typeof names) => {
    if (name === view.value) return
    view.value = name
    // From now on, send what the other view shows: the parsed value, not the typed text.
    onChange(value)
  }
  return (
    <Tabs label="Argument editor" names={names} value={view.value} onChange={switchView}>
      {view.value === 'json' ? (
        <RawJson value={value} onChange={onChange} onInvalidJson={onInvalidJson} />
      ) : (
        <SchemaForm {...form} />
      )}
    </Tabs>
  )
}

/** A form that is generated from a schema. */
export function SchemaForm({
  schema,
  value,
  problems = [],
  titled = false,
  onChange,
}: Omit<EditorProps, 'onInvalidJson'>) {
  const field = fieldOf(schema, schema)
  const props = {
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
  if (field.kind !== 'object') return <FormField {...props} />
  if (field.properties.length === 0 && field.additional === undefined)
    return <p class="quiet">This tool takes no arguments.</p>
  return (
    <div class="form">
      <Members {...props} field={field} titled={titled} renderField={(props) => <FormField {...props} />} />
    </div>
  )
}

interface RawJsonProps {
  readonly value: unknown
  onChange(value: unknown, text: string): void
  onInvalidJson(broken: boolean): void
}

function RawJson({ value, onChange, onInvalidJson }: RawJsonProps) {
  const id = useId()
  const text = useSignal(JSON.stringify(value ?? {}, null, 2))
  const parsed = parseJson(text.value)
  const invalid = 'error' in parsed
  // When the editor closes, the last valid value remains, so the arguments are no longer invalid.
  useEffect(() => () => onInvalidJson(false), [])
  const onInput = (next: string) => {
    text.value = next
    const now = parseJson(next)
    onInvalidJson('error' in now)
    if ('value' in now) onChange(now.value, next)
  }
  return (
    <div class="stack tight">
      <textarea
        class="input mono raw"
        aria-label="Arguments as JSON"
        aria-invalid={invalid}
        aria-describedby={invalid ? id : undefined}
        rows={Math.min(24, Math.max(8, text.value.split('\n').length + 1))}
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      {invalid && (
        <p id={id} class="problem">
          Invalid JSON: {parsed.error}
        </p>
      )}
    </div>
  )
}

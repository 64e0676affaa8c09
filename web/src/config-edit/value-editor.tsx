import { useSignal } from '@preact/signals'
import { Tabs } from '../components/tabs.tsx'
import { SchemaForm } from '../schema-form/argument-editor.tsx'
import { parseJson } from '../schema-form/parse-input.ts'
import { isObject, objectAt, type Schema } from '../schema-form/schema.ts'

/** A value for a change of the configuration, from the form or as YAML. */
export type EditedValue = { readonly value: unknown } | { readonly yaml: string }

interface ValueEditorProps {
  /** The name of what is edited, such as `Agent coder`. */
  readonly title: string
  readonly schema: Schema
  /** The settings that are always visible; the others are behind a summary. By default, all are visible. */
  readonly common?: readonly string[]
  readonly value: unknown
  readonly yaml: string
  onChange(edited: EditedValue): void
}

const views = { form: 'Form', yaml: 'YAML' } as const

/** Edits a part of the configuration, as a form generated from its schema or as YAML. */
export function ValueEditor({ title, schema, common, onChange, ...initial }: ValueEditorProps) {
  const view = useSignal<keyof typeof views>('form')
  const value = useSignal(initial.value)
  const text = useSignal(initial.yaml)
  const edited = useSignal(false)
  const stuck = useSignal(false)

  const switchView = (next: keyof typeof views) => {
    if (next === view.value) return
    stuck.value = false
    if (edited.value && next === 'yaml') text.value = `${JSON.stringify(value.value, null, 2)}\n`
    if (edited.value && next === 'form') {
      // The page has no YAML parser, but JSON is YAML too.
      const parsed = parseJson(text.value)
      if ('error' in parsed) {
        stuck.value = true
        return
      }
      value.value = parsed.value
    }
    view.value = next
    if (edited.value) onChange(next === 'yaml' ? { yaml: text.value } : { value: value.value })
  }
  const change = (next: unknown) => {
    edited.value = true
    value.value = next
    onChange({ value: next })
  }
  return (
    <>
      <Tabs label="Editor" names={views} value={view.value} onChange={switchView}>
        {view.value === 'form' ? (
          <SettingsForm schema={schema} common={common} value={value.value} onChange={change} />
        ) : (
          <textarea
            class="input mono raw"
            aria-label={`${title} as YAML`}
            rows={Math.min(24, Math.max(8, text.value.split('\n').length + 1))}
            spellcheck={false}
            value={text.value}
            onInput={({ currentTarget }) => {
              edited.value = true
              text.value = currentTarget.value
              onChange({ yaml: text.value })
            }}
          />
        )}
      </Tabs>
      {stuck.value && (
        <p class="problem" role="alert">
          The form cannot read edited YAML. Continue with Review, or save it and open the form again.
        </p>
      )}
    </>
  )
}

interface SettingsFormProps {
  readonly schema: Schema
  readonly common: readonly string[] | undefined
  readonly value: unknown
  onChange(value: unknown): void
}

function SettingsForm({ schema, common, value, onChange }: SettingsFormProps) {
  if (!common) return <SchemaForm schema={schema} value={value} onChange={onChange} />
  const all = isObject(value) ? value : {}
  // Other spellings of settings are shown only where they are used.
  const shown = Object.fromEntries(
    Object.entries(objectAt(schema, 'properties')).filter(
      ([name, setting]) => all[name] !== undefined || !isObject(setting) || setting.deprecated !== true,
    ),
  )
  const part = (isIn: (name: string) => boolean) => {
    const pick = (from: Schema) => Object.fromEntries(Object.entries(from).filter(([name]) => isIn(name)))
    const others = Object.fromEntries(Object.entries(all).filter(([name]) => !isIn(name)))
    return (
      <SchemaForm
        schema={{ ...schema, properties: pick(shown) }}
        value={pick(all)}
        onChange={(next) => onChange({ ...others, ...(isObject(next) ? next : {}) })}
      />
    )
  }
  return (
    <>
      {part((name) => common.includes(name))}
      <details>
        <summary>More settings</summary>
        {part((name) => !common.includes(name))}
      </details>
    </>
  )
}

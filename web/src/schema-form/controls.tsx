import { useSignal } from '@preact/signals'
import { showDirections } from '../format/show-directions.ts'
import type { ControlProps } from './field-props.ts'
import { parseJson, parseNumber, parseText, toInputText } from './parse-input.ts'
import { memberOf } from './path.ts'

const attributes = ({ id, invalid, describedBy, required }: ControlProps) => ({
  id,
  'aria-invalid': invalid,
  'aria-describedby': describedBy,
  'aria-required': required,
})

/** The browser input types for JSON Schema formats. */
const inputTypes: Readonly<Record<string, string>> = {
  date: 'date',
  email: 'email',
  uri: 'url',
  'uri-reference': 'url',
  password: 'password',
}

/** The placeholders of empty fields for JSON Schema formats. */
const formatExamples: Readonly<Record<string, string>> = {
  date: '2026-03-01',
  'date-time': '2026-03-01T12:00:00Z',
  time: '12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/a',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
}

export function TextControl(props: ControlProps) {
  const { value, schema, onChange } = props
  const placeholder = (typeof schema.format === 'string' && memberOf(formatExamples, schema.format)) || ''
  const inputProps = {
    ...attributes(props),
    class: 'input',
    dir: 'auto' as const,
    placeholder,
    value: toInputText(value),
    autocomplete: 'off' as const,
    spellcheck: false,
    onInput: (event: { readonly currentTarget: { readonly value: string } }) =>
      onChange(parseText(event.currentTarget.value)),
  }
  if (isBinary(schema)) return <FileControl {...props} />
  if (typeof schema.format !== 'string') return <textarea {...inputProps} rows={1} />
  // Preact's types do not allow an input type that is a variable.
  return <input {...inputProps} type={(memberOf(inputTypes, schema.format) ?? 'text') as 'text'} />
}

/** Whether a text holds bytes in base64, as its schema says. */
const isBinary = ({ contentEncoding, format, description }: ControlProps['schema']): boolean =>
  contentEncoding === 'base64' ||
  format === 'byte' ||
  format === 'binary' ||
  (typeof description === 'string' && /\bbase-?64\b/i.test(description))

/** A field for base64: the bytes of a file that the user picks, or text that is typed. */
function FileControl(props: ControlProps) {
  const { id, value, schema, onChange } = props
  const { contentMediaType } = schema
  const pick = (file: File | undefined) => {
    if (!file) return
    const reader = new FileReader()
    reader.onload = () => onChange(String(reader.result).replace(/^[^,]*,/, ''))
    reader.readAsDataURL(file)
  }
  return (
    <div class="stack tight">
      <input
        class="input"
        type="file"
        aria-label="File"
        accept={typeof contentMediaType === 'string' ? contentMediaType : undefined}
        onChange={({ currentTarget }) => pick(currentTarget.files?.[0])}
      />
      <textarea
        {...attributes(props)}
        id={id}
        class="input mono"
        rows={2}
        placeholder="base64"
        spellcheck={false}
        value={toInputText(value)}
        onInput={({ currentTarget }) => onChange(parseText(currentTarget.value))}
      />
    </div>
  )
}

export function NumberControl(props: ControlProps) {
  const { value, schema, onChange } = props
  return (
    <input
      {...attributes(props)}
      class="input number"
      type="text"
      inputMode={schema.type === 'integer' ? 'numeric' : 'decimal'}
      autocomplete="off"
      value={toInputText(value)}
      onInput={(event) => onChange(parseNumber(event.currentTarget.value))}
    />
  )
}

export function BooleanControl(props: ControlProps) {
  const { value, required, onChange } = props
  return (
    <select
      {...attributes(props)}
      class="input"
      value={value === undefined ? '' : String(value)}
      onChange={({ currentTarget }) =>
        onChange(currentTarget.value === '' ? undefined : currentTarget.value === 'true')
      }
    >
      {!required && <option value="">not set</option>}
      <option value="true">true</option>
      <option value="false">false</option>
    </select>
  )
}

interface ChoiceProps extends ControlProps {
  readonly values: readonly unknown[]
  /** What is shown instead of the values. */
  readonly titles?: readonly (string | undefined)[]
}

export function ChoiceControl(props: ChoiceProps) {
  const { value, values, titles = [], required, onChange } = props
  const index = values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value))
  return (
    <select
      {...attributes(props)}
      class="input"
      value={index < 0 ? '' : String(index)}
      onChange={({ currentTarget }) =>
        onChange(currentTarget.value === '' ? undefined : values[Number(currentTarget.value)])
      }
    >
      <option value="">{required ? 'choose…' : 'not set'}</option>
      {values.map((one, position) => (
        <option key={JSON.stringify(one)} value={String(position)}>
          {showDirections(titles[position] ?? toInputText(one))}
        </option>
      ))}
    </select>
  )
}

/**
 * A field for any value, as JSON. Incomplete JSON stays in the field, but the field has no value until the JSON is
 * complete.
 */
export function JsonControl(props: ControlProps) {
  const { value, onChange } = props
  const typed = useSignal(value === undefined ? '' : JSON.stringify(value, null, 2))
  const parsed = parseJson(typed.value)
  return (
    <>
      <textarea
        {...attributes(props)}
        class="input mono"
        rows={2}
        spellcheck={false}
        placeholder="JSON"
        value={typed.value}
        onInput={({ currentTarget }) => {
          typed.value = currentTarget.value
          const now = parseJson(currentTarget.value)
          onChange('value' in now ? now.value : undefined)
        }}
      />
      {'error' in parsed && <p class="problem">Invalid JSON: {parsed.error}</p>}
    </>
  )
}

import { useSignal } from '@preact/signals'
import type { Field } from './field.ts'
import type { FieldProps, RenderField } from './field-props.ts'
import { Group } from './group.tsx'
import { initialValue } from './initial-value.ts'
import { bestVariant } from './problems.ts'

type VariantsProps = FieldProps & {
  readonly field: Field & { readonly kind: 'variants' }
  readonly renderField: RenderField
}

/** The field for a union. The user first selects a variant. */
export function VariantsField({ field, renderField, ...props }: VariantsProps) {
  const { label, value, root, required, onChange } = props
  const unset = !required && value === undefined
  const selected = useSignal(bestVariant(value, field.variants, root))
  const variant = field.variants[selected.value] ?? field.variants[0]
  const select = (text: string) => {
    if (text === '') return onChange(undefined)
    selected.value = Number(text)
    onChange(initialValue(field.variants[selected.value]?.schema, root))
  }
  const { description } = field.schema
  return (
    <Group props={props} type={`one of ${field.variants.length} types`} note={description}>
      <select
        class="input"
        aria-label={`Type of ${label}`}
        value={unset ? '' : String(selected.value)}
        onChange={({ currentTarget }) => select(currentTarget.value)}
      >
        {!required && <option value="">not set</option>}
        {field.variants.map((one, index) => (
          <option key={index} value={String(index)}>
            {one.label}
          </option>
        ))}
      </select>
      {!unset && variant && (
        <div key={selected.value}>
          {renderField({
            ...withoutRemove(props),
            label: variant.label,
            schema: variant.schema,
            required: true,
            depth: props.depth + 1,
          })}
        </div>
      )}
    </Group>
  )
}

/** Drops a variant's remove button, because the group around the variant already has one. */
function withoutRemove({ remove: _, ...props }: FieldProps): FieldProps {
  return props
}

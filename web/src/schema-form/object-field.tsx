import { useSignal } from '@preact/signals'
import { showDirections } from '../format/show-directions.ts'
import type { Field } from './field.ts'
import type { FieldProps, RenderField } from './field-props.ts'
import { Add, Group } from './group.tsx'
import { initialValue } from './initial-value.ts'
import { memberOf, withMember } from './path.ts'
import { isObject, resolveSchema, type Schema } from './schema.ts'

type ObjectProps = FieldProps & {
  readonly field: Field & { readonly kind: 'object' }
  readonly renderField: RenderField
  /** Whether properties are labelled with their titles, for people who need not know their names. */
  readonly titled?: boolean
}

/** An object. If it is optional, it is omitted until the user adds it. */
export function ObjectField({ field, renderField, ...props }: ObjectProps) {
  const { value, root, required, onChange, label } = props
  const remove = props.remove ?? (!required && value !== undefined ? () => onChange(undefined) : undefined)
  const { description } = field.schema
  return (
    <Group props={remove ? { ...props, remove } : props} type="object" note={description}>
      {value === undefined ? (
        <Add what={label} onClick={() => onChange(initialValue(field.schema, root))} />
      ) : (
        <Members {...props} field={field} renderField={renderField} />
      )}
    </Group>
  )
}

/** The properties of an object, and additional ones if the schema allows them. */
export function Members({ field, renderField, titled = false, ...props }: ObjectProps) {
  const { value, root, path, problems, depth, onChange } = props
  const object = isObject(value) ? value : {}
  const known = new Set(field.properties.map(({ name }) => name))
  const additionalNames = Object.keys(object).filter((name) => !known.has(name))
  const memberProps = (name: string, schema: unknown, required: boolean): FieldProps => ({
    label: (titled && titleOf(schema, root)) || name,
    schema,
    root,
    required,
    value: memberOf(object, name),
    path: [...path, name],
    problems,
    depth: depth + 1,
    onChange: (next) => onChange(withMember(object, name, next)),
  })
  return (
    <>
      {field.properties.map(({ name, schema, required }) => (
        <div key={name}>{renderField(memberProps(name, schema, required))}</div>
      ))}
      {additionalNames.map((name) => (
        <div key={`+${name}`}>
          {renderField({
            ...memberProps(name, field.additional ?? true, true),
            value: object[name] ?? undefined,
            onChange: (next) => onChange(withMember(object, name, next ?? null)),
            remove: () => onChange(withMember(object, name, undefined)),
          })}
        </div>
      ))}
      {field.additional !== undefined && (
        <AddProperty
          taken={(name) => Object.hasOwn(object, name)}
          add={(name) => onChange(withMember(object, name, initialValue(field.additional, root) ?? null))}
        />
      )}
    </>
  )
}

function titleOf(schema: unknown, root: Schema): string | undefined {
  const { title } = resolveSchema(schema, root)
  return typeof title === 'string' ? showDirections(title) : undefined
}

function AddProperty({ taken, add }: { taken(name: string): boolean; add(name: string): void }) {
  const name = useSignal('')
  const available = name.value !== '' && !taken(name.value)
  return (
    <div class="row">
      <input
        class="input name"
        aria-label="Property name"
        placeholder="property name"
        value={name.value}
        onInput={({ currentTarget }) => (name.value = currentTarget.value)}
      />
      <Add
        what="property"
        onClick={() => {
          if (!available) return
          add(name.value)
          name.value = ''
        }}
      />
    </div>
  )
}

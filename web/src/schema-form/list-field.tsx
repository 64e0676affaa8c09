import { describeType } from './describe.ts'
import type { Field } from './field.ts'
import type { FieldProps, RenderField } from './field-props.ts'
import { Add, Group } from './group.tsx'
import { initialValue } from './initial-value.ts'
import { withItem, withoutItem } from './path.ts'

type ListProps = FieldProps & { readonly field: Field & { readonly kind: 'list' }; readonly renderField: RenderField }

/** A list. If it is optional and has no items, it is omitted. */
export function ListField({ field, renderField, ...props }: ListProps) {
  const { value, root, required, path, problems, depth, onChange } = props
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  const schemaAt = (index: number) => field.prefixItems[index] ?? field.items ?? true
  const change = (next: readonly unknown[]) => onChange(next.length === 0 && !required ? undefined : next)
  const { maxItems, description } = field.schema
  const full = typeof maxItems === 'number' && items.length >= maxItems
  return (
    <Group props={props} type={describeType(field.schema, root)} note={description}>
      {items.map((item, index) => (
        <div key={index}>
          {renderField({
            label: `${index + 1}`,
            schema: schemaAt(index),
            root,
            required: true,
            // Show an unfilled item as empty, not as null.
            value: item === null ? undefined : item,
            path: [...path, index],
            problems,
            depth: depth + 1,
            onChange: (next) => change(withItem(items, index, next)),
            remove: () => change(withoutItem(items, index)),
          })}
        </div>
      ))}
      {!full && (
        <Add what="item" onClick={() => change([...items, initialValue(schemaAt(items.length), root) ?? null])} />
      )}
    </Group>
  )
}

import { ForeignText } from '../components/foreign-text.tsx'
import { describeConstraints, describeType } from './describe.ts'
import { fieldOf } from './field.ts'
import type { Schema } from './schema.ts'
import './schema-form.css'

interface ViewProps {
  readonly schema: unknown
  readonly root: Schema
  readonly depth?: number
}

export function SchemaView({ schema, root, depth = 0 }: ViewProps) {
  const field = fieldOf(schema, root)
  if (depth > 5) return null
  if (field.kind === 'list') return <SchemaView schema={field.items ?? {}} root={root} depth={depth + 1} />
  if (field.kind === 'variants') {
    return (
      <ul class="schema">
        {field.variants.map(({ label, schema: variant }, index) => (
          <li key={index}>
            <span class="quiet small">either</span> <strong>{label}</strong>
            <SchemaView schema={variant} root={root} depth={depth + 1} />
          </li>
        ))}
      </ul>
    )
  }
  if (field.kind !== 'object') return null
  if (field.properties.length === 0) return depth === 0 ? <p class="quiet">None.</p> : null
  return (
    <ul class="schema">
      {field.properties.map(({ name, schema: property, required }) => (
        <Property key={name} name={name} schema={property} required={required} root={root} depth={depth} />
      ))}
    </ul>
  )
}

interface PropertyProps {
  readonly name: string
  readonly schema: unknown
  readonly required: boolean
  readonly root: Schema
  readonly depth: number
}

function Property({ name, schema, required, root, depth }: PropertyProps) {
  const { schema: own } = fieldOf(schema, root, required)
  return (
    <li>
      <div class="field-head">
        <code>{name}</code>
        {required && <span class="required">required</span>}
        <span class="quiet small">{[describeType(schema, root), ...describeConstraints(own, root)].join(' · ')}</span>
      </div>
      {typeof own.description === 'string' && <ForeignText text={own.description} class="field-note" />}
      <SchemaView schema={schema} root={root} depth={depth + 1} />
    </li>
  )
}

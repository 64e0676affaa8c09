import { useId } from 'preact/hooks'
import { ForeignText } from '../components/foreign-text.tsx'
import { BooleanControl, ChoiceControl, JsonControl, NumberControl, TextControl } from './controls.tsx'
import { describeConstraints, describeType } from './describe.ts'
import { type Field, fieldOf } from './field.ts'
import type { ControlProps, FieldProps } from './field-props.ts'
import { Remove } from './group.tsx'
import { ListField } from './list-field.tsx'
import { ObjectField } from './object-field.tsx'
import { pathText } from './path.ts'
import { VariantsField } from './variants-field.tsx'

/** Max nesting depth of fields. Limited because schemas can be recursive; deeper values are edited as JSON. */
const maxDepth = 10

const renderField = (props: FieldProps) => <FormField {...props} />

export function FormField(props: FieldProps) {
  const { schema, root, required, depth } = props
  const field = fieldOf(schema, root, required)
  if (depth < maxDepth) {
    if (field.kind === 'object') return <ObjectField {...props} field={field} renderField={renderField} />
    if (field.kind === 'list') return <ListField {...props} field={field} renderField={renderField} />
    if (field.kind === 'variants') return <VariantsField {...props} field={field} renderField={renderField} />
  }
  return <SingleField {...props} field={field} />
}

/** A field with a single control. */
function SingleField({
  label,
  schema,
  root,
  required,
  value,
  path,
  problems,
  field,
  onChange,
  remove,
}: FieldProps & { field: Field }) {
  const id = useId()
  const problem = problems.find(({ place }) => place === pathText(path))
  const { description } = field.schema
  // The values behind the titles matter to nobody who answers a question.
  const isTitled = field.kind === 'choice' && field.titles.some((title) => title !== undefined)
  const noted = typeof description === 'string'
  const described = [noted && `${id}-note`, problem && `${id}-problem`].filter(Boolean).join(' ') || undefined
  const control = {
    id,
    value,
    schema: field.schema,
    required,
    invalid: problem !== undefined,
    describedBy: described,
    onChange,
  }
  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>{label}</label>
        {required && !remove && <span class="required">required</span>}
        <span class="quiet small">
          {[...(isTitled ? [] : [describeType(schema, root)]), ...describeConstraints(field.schema, root)].join(' · ')}
        </span>
        {remove && <Remove label={label} remove={remove} />}
      </div>
      {noted && <ForeignText text={description} id={`${id}-note`} class="field-note" />}
      <Control field={field} {...control} />
      {problem && (
        <p id={`${id}-problem`} class="problem">
          {label} {problem.message}
        </p>
      )}
    </div>
  )
}

function Control({ field, ...control }: ControlProps & { readonly field: Field }) {
  switch (field.kind) {
    case 'text':
      return <TextControl {...control} />
    case 'number':
      return <NumberControl {...control} />
    case 'boolean':
      return <BooleanControl {...control} />
    case 'choice':
      return <ChoiceControl {...control} values={field.values} titles={field.titles} />
    case 'fixed':
      return <ChoiceControl {...control} values={[field.value]} />
    case 'null':
      return <ChoiceControl {...control} values={[null]} />
    default:
      return <JsonControl {...control} />
  }
}

import type { ComponentChildren } from 'preact'
import { Icon } from '../components/icon.tsx'
import { showDirections } from '../format/show-directions.ts'
import type { FieldProps } from './field-props.ts'
import { pathText } from './path.ts'

interface GroupProps {
  readonly props: FieldProps
  readonly type: string
  readonly note: unknown
  readonly children: ComponentChildren
}

/** A field with nested fields. */
export function Group({ props, type, note, children }: GroupProps) {
  const { label, required, remove, problems, path } = props
  return (
    <fieldset class="group">
      <legend class="field-head">
        <span>{label}</span>
        {required && !remove && <span class="required">required</span>}
        <span class="quiet small">{type}</span>
        {remove && <Remove label={label} remove={remove} />}
      </legend>
      {typeof note === 'string' && (
        <p class="field-note" dir="auto">
          {showDirections(note)}
        </p>
      )}
      <div class="group-body">{children}</div>
      {problems
        .filter(({ place }) => place === pathText(path))
        .map(({ message }) => (
          <p key={message} class="problem">
            {label} {message}
          </p>
        ))}
    </fieldset>
  )
}

export function Remove({ label, remove }: { readonly label: string; remove(): void }) {
  return (
    <button type="button" class="button plain icon tiny" aria-label={`Remove ${label}`} onClick={remove}>
      <Icon name="close" size={12} />
    </button>
  )
}

export function Add({ what, onClick }: { readonly what: string; onClick(): void }) {
  return (
    <button type="button" class="button tiny" onClick={onClick}>
      <Icon name="add" size={12} /> Add {what}
    </button>
  )
}

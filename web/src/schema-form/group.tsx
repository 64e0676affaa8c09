import type { ComponentChildren } from 'preact'
import { Button } from '../components/button.tsx'
import { ForeignText } from '../components/foreign-text.tsx'
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
      {typeof note === 'string' && <ForeignText text={note} class="field-note" />}
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
  return <Button kind="plain icon tiny" icon="close" aria-label={`Remove ${label}`} onClick={remove} />
}

export function Add({ what, onClick }: { readonly what: string; onClick(): void }) {
  return (
    <Button kind="tiny" icon="add" onClick={onClick}>
      Add {what}
    </Button>
  )
}

import type { ComponentProps } from 'preact'
import { Icon, type IconName } from './icon.tsx'

interface ButtonProps extends Omit<ComponentProps<'button'>, 'class' | 'icon'> {
  /** How it looks: `primary`, `danger` or `plain`; `tiny`; and `icon` if it has no text. */
  readonly kind?: string
  readonly icon?: IconName | undefined
}

export function Button({ kind = '', icon, children, ...attributes }: ButtonProps) {
  return (
    <button type="button" {...attributes} class={`button ${kind}`}>
      {icon && <Icon name={icon} size={kind.includes('tiny') ? 12 : 14} />}
      {icon && children !== undefined && ' '}
      {children}
    </button>
  )
}

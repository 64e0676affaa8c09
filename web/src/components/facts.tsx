import type { ComponentChildren } from 'preact'

/** A list of names and values. */
export const Facts = ({ children }: { readonly children: ComponentChildren }) => <dl class="facts">{children}</dl>

interface FactProps {
  readonly name: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}

/** One of them; nothing if it has no value. */
export function Fact({ name, children, ...attributes }: FactProps) {
  if (children === null || children === undefined || children === false || children === '') return null
  return (
    <>
      <dt>{name}</dt>
      <dd {...attributes}>{children}</dd>
    </>
  )
}

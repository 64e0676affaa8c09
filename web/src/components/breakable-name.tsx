import { Fragment } from 'preact'

/** Allows line breaks after dots, underscores and hyphens. */
export function BreakableName({ name }: { readonly name: string }) {
  return name.split(/(?<=[._-])(?![._-])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

import { Fragment } from 'preact'

/** A name that may be broken into lines after dots, underscores and hyphens. */
export function BreakableName({ name }: { readonly name: string }) {
  return name.split(/(?<=[._-])(?![._-])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

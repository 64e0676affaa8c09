import { Fragment } from 'preact'

/** Allows line breaks after dots, underscores and hyphens. */
export function BreakableName({ of }: { readonly of: string }) {
  return of.split(/(?<=[._-])(?![._-])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

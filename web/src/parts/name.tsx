import { Fragment } from 'preact'

/** A long name that breaks where a reader would break it, behind its dots and underscores. */
export function Name({ of }: { readonly of: string }) {
  return of.split(/(?<=[._-])(?![._-])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

import { Fragment } from 'preact'

/** Shorter parts are not separated: each break is an element, and a table may show hundreds of names. */
const minPart = 10

/** A name that may be broken into lines after dots, underscores and hyphens. */
export function BreakableName({ name }: { readonly name: string }) {
  return partsOf(name).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ))
}

function partsOf(name: string): readonly string[] {
  const parts: string[] = []
  for (const piece of name.split(/(?<=[._-])(?![._-])/)) {
    const last = parts.at(-1)
    if (last !== undefined && last.length < minPart) parts[parts.length - 1] = last + piece
    else parts.push(piece)
  }
  return parts
}

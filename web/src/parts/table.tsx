import type { ComponentChildren } from 'preact'
import { moveAlongRows } from './row-keys.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly end?: boolean
  /** From which width on it is shown: `middle` from a tablet, `wide` from a desktop on. */
  readonly from?: 'middle' | 'wide'
  /** Takes the room that is left, and cuts what does not fit. */
  readonly clip?: boolean
  /** What stands in the head instead of the title, a button for sorting for one. */
  readonly head?: ComponentChildren
  readonly sorted?: 'ascending' | 'descending' | undefined
}

interface TableProps<Row> {
  /** What the table shows, for those who hear it. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly current?: (row: Row) => boolean
}

/** Rows and columns. Where cells have a RowLink, the arrow keys go from row to row. */
export function Table<Row>({ label, columns, rows, keyOf, current }: TableProps<Row>) {
  const classes = ({ end, from, clip }: Column<Row>) => [end && 'end', from, clip && 'clip'].filter(Boolean).join(' ')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table onKeyDown={moveAlongRows}>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classes(column)} aria-sort={column.sorted}>
                {column.head ?? column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} data-current={current?.(row) || undefined}>
              {columns.map((column) => (
                <td key={column.title} class={classes(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** The link of a row: the whole of it can be clicked. */
export function RowLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  return (
    <a class="row-link" href={href}>
      {children}
    </a>
  )
}

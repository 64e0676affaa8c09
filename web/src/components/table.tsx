import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly alignEnd?: boolean
  /**
   * The smallest screen that shows the column: `middle` for tablets, `wide` for desktops. If omitted, all screens show
   * it.
   */
  readonly minScreen?: 'middle' | 'wide'
  /** If true, the column takes the remaining width, and its text is truncated. */
  readonly truncate?: boolean
  /** Replaces the title in the header, for example with a sort button. */
  readonly header?: ComponentChildren
  readonly sorted?: 'ascending' | 'descending' | undefined
}

interface TableProps<Row> {
  /** The table's label for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly current?: (row: Row) => boolean
}

/** A table. If its cells contain a RowLink, the arrow keys move between rows. */
export function Table<Row>({ label, columns, rows, keyOf, current }: TableProps<Row>) {
  const classes = ({ alignEnd, minScreen, truncate }: Column<Row>) =>
    [alignEnd && 'end', minScreen, truncate && 'clip'].filter(Boolean).join(' ')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table onKeyDown={moveBetweenRows}>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classes(column)} aria-sort={column.sorted}>
                {column.header ?? column.title}
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

/** A link that makes the whole row clickable. */
export function RowLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  return (
    <a class="row-link" href={href}>
      {children}
    </a>
  )
}

const moves: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
}

/** Moves the focus between the rows' links with the arrow keys, Home and End. */
function moveBetweenRows(event: KeyboardEvent & { readonly currentTarget: Element }): void {
  const move = moves[event.key]
  const { target } = event
  if (!move || !(target instanceof HTMLElement) || !target.classList.contains('row-link')) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')]
  event.preventDefault()
  links[move(links.indexOf(target), links.length - 1)]?.focus()
}

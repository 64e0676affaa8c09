import type { ComponentChildren } from 'preact'
import { query, setQuery } from '../routing/location.ts'
import { BreakableName } from './breakable-name.tsx'
import { Icon } from './icon.tsx'
import { formatSort, nextSort, parseSort, type SortOrder, type SortValue, shownRows, sortKey } from './table-sort.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly alignEnd?: boolean
  /**
   * The smallest screen that shows the column: `middle` for tablets, `wide` for desktops. If omitted, all screens show
   * it.
   */
  readonly minScreen?: 'middle' | 'wide'
  /** If true, the column is left out of narrow tables. */
  readonly alone?: true
  /** If true, the column takes the remaining width, and its text is truncated. */
  readonly truncate?: boolean
  /** The value to sort by. Columns without it cannot be sorted. */
  readonly sortBy?: (row: Row) => SortValue
  /** If true, the first click sorts in descending order, which is usual for numbers. Default: as `alignEnd`. */
  readonly descendingFirst?: boolean
}

interface TableSort {
  /** The query parameter with the order, such as `sort=-p95`. Tables on the same page need different ones. */
  readonly param?: string
  /** The order of the rows as they are given, such as `-calls`; omitted if it is the order of no column. */
  readonly initial?: string
  /** Set if the API sorts, because the table shows only a part of the rows. */
  readonly remote?: true
}

export interface TableProps<Row> {
  /** The table's label for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly current?: (row: Row) => boolean
  readonly sort?: TableSort
  /** The first row that is shown, after sorting; by default 0. */
  readonly offset?: number
  /** The maximum number of rows that are shown, after sorting. */
  readonly limit?: number
  /** If true, the table has little room, because details are shown beside it. */
  readonly narrow?: boolean
  /** If true, the first column names the row, and stays visible while the others scroll. */
  readonly matrix?: boolean
}

/** A table that can be sorted by its headers. If its cells contain a RowLink, the arrow keys move between rows. */
export function Table<Row>({ label, columns: all, rows, keyOf, current, sort = {}, ...rest }: TableProps<Row>) {
  const { offset = 0, limit, narrow, matrix } = rest
  const columns = narrow ? all.filter(({ alone }) => !alone) : all
  const { param = 'sort', initial, remote } = sort
  const chosen = parseSort(query.value.get(param))
  const sortedColumn = columns.find(({ title, sortBy }) => sortBy && sortKey(title) === chosen?.key)
  const order = sortedColumn ? chosen : parseSort(initial)
  const sortBy = remote ? undefined : sortedColumn?.sortBy
  const shown = shownRows(rows, { sortBy, descending: chosen?.descending ?? false, offset, limit })
  const classes = ({ alignEnd, minScreen, truncate }: Column<Row>) =>
    [alignEnd && 'end', minScreen, truncate && 'clip'].filter(Boolean).join(' ')
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <section class={matrix ? 'table matrix' : 'table'} aria-label={label} tabIndex={0}>
      <table onKeyDown={moveBetweenRows} onMouseDown={keepFromScrolling} onClick={openRow} onAuxClick={openRow}>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classes(column)} aria-sort={ariaSort(order, column.title)}>
                {column.sortBy ? <SortButton column={column} order={order} param={param} /> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)} data-current={current?.(row) || undefined}>
              {columns.map((column, index) =>
                matrix && index === 0 ? (
                  <th key={column.title} scope="row">
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.title} class={classes(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function ariaSort(order: SortOrder | undefined, title: string): 'ascending' | 'descending' | undefined {
  if (order?.key !== sortKey(title)) return undefined
  return order.descending ? 'descending' : 'ascending'
}

interface SortButtonProps {
  readonly column: Pick<Column<never>, 'title' | 'alignEnd' | 'descendingFirst'>
  readonly order: SortOrder | undefined
  readonly param: string
}

function SortButton({
  column: { title, alignEnd = false, descendingFirst = alignEnd },
  order,
  param,
}: SortButtonProps) {
  const direction = ariaSort(order, title)
  const change = () => {
    const next = nextSort(order, sortKey(title), descendingFirst)
    setQuery({ [param]: next && formatSort(next) })
  }
  return (
    <button type="button" class="sort" onClick={change}>
      <span>
        <BreakableName name={title} />
      </span>{' '}
      {direction && <Icon name={direction === 'descending' ? 'down' : 'up'} size={11} />}
    </button>
  )
}

/** A link that makes the whole row clickable. It is the row's only focusable element. */
export function RowLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  return (
    <a class="row-link" href={href}>
      {children}
    </a>
  )
}

/** The row's link, if the event is on a part of the row that does nothing else. */
function linkOfRow({ target }: Event): HTMLAnchorElement | null | undefined {
  if (!(target instanceof Element) || target.closest('a, button, dialog, input, label, select')) return null
  return target.closest('tr')?.querySelector<HTMLAnchorElement>('a.row-link')
}

/** Opens the row's link as a click on it would: the middle button and modifier keys open it in another tab. */
function openRow(event: MouseEvent): void {
  const link = linkOfRow(event)
  const isMiddle = event.button === 1
  // The end of a drag that selects text is a click, too.
  if (!link || (event.button !== 0 && !isMiddle) || getSelection()?.isCollapsed === false) return
  if (isMiddle || event.ctrlKey || event.metaKey || event.shiftKey) window.open(link.href, '_blank', 'noopener')
  else link.click()
}

/** Pressing the middle button would scroll the page with the pointer. */
function keepFromScrolling(event: MouseEvent): void {
  if (event.button === 1 && linkOfRow(event)) event.preventDefault()
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

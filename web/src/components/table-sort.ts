/** The value of a cell for sorting. Rows without a value come last in both directions. */
export type SortValue = string | number | null | undefined

/** How a table is sorted: the column's key, and the direction. */
export interface SortOrder {
  readonly key: string
  readonly descending: boolean
}

/** The key of a column in addresses: `Limit per caller` as `limit-per-caller`. */
export const sortKey = (title: string): string => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')

/** Parses `p95` or `-p95`, of which the latter sorts in descending order. */
export function parseSort(text: string | null | undefined): SortOrder | undefined {
  if (text === null || text === undefined || text === '' || text === '-') return undefined
  return text.startsWith('-') ? { key: text.slice(1), descending: true } : { key: text, descending: false }
}

export const formatSort = ({ key, descending }: SortOrder): string => (descending ? `-${key}` : key)

/** The order after a click on a header: first the column's usual direction, then the other one, then none. */
export function nextSort(current: SortOrder | undefined, key: string, descendingFirst: boolean): SortOrder | undefined {
  if (current?.key !== key) return { key, descending: descendingFirst }
  return current.descending === descendingFirst ? { key, descending: !descendingFirst } : undefined
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })

/** Sorts rows by a value. Rows with equal values keep their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  valueIn: (row: Row) => SortValue,
  descending: boolean,
): readonly Row[] {
  const sign = descending ? -1 : 1
  return rows
    .map((row) => ({ row, value: valueIn(row) }))
    .sort((a, b) => {
      const [first, second] = [a.value ?? null, b.value ?? null]
      if (first === null || second === null) return Number(first === null) - Number(second === null)
      return sign * (typeof first === 'number' && typeof second === 'number' ? first - second : compare(first, second))
    })
    .map(({ row }) => row)
}

interface ShownRows<Row> {
  /** The value to sort by; without it, the rows keep their order. */
  readonly sortBy: ((row: Row) => SortValue) | undefined
  readonly descending: boolean
  /** The first row that is shown, and the maximum number of rows. */
  readonly offset: number
  readonly limit: number | undefined
}

/** The rows of one page of a table. Sorts all rows first. */
export function shownRows<Row>(rows: readonly Row[], { sortBy, descending, offset, limit }: ShownRows<Row>) {
  const sorted = sortBy ? sortRows(rows, sortBy, descending) : rows
  return sorted.slice(offset, limit === undefined ? undefined : offset + limit)
}

const compare = (a: string | number, b: string | number): number => collator.compare(String(a), String(b))

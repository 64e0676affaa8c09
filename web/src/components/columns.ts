import { formatCount, formatShare, shareOf } from '../format/number.ts'
import type { Column } from './table.tsx'

type ColumnOptions = Pick<Column<never>, 'minScreen' | 'alone'>

/** A column of texts. */
export const textColumn = <Row>(
  title: string,
  textOf: (row: Row) => string | null,
  options: ColumnOptions = {},
): Column<Row> => ({ title, sortBy: textOf, cell: textOf, ...options })

type Count = number | null | undefined

/** A column of numbers, by default counts. */
export const numberColumn = <Row>(
  title: string,
  numberOf: (row: Row) => Count,
  { format = formatCount, ...options }: ColumnOptions & { format?(value: Count): string } = {},
): Column<Row> => ({ title, alignEnd: true, sortBy: numberOf, cell: (row) => format(numberOf(row)), ...options })

/** A column of shares: of a part in a whole. */
export const shareColumn = <Row>(
  title: string,
  numbersOf: (row: Row) => readonly [part: number | undefined, whole: number | undefined],
  options: ColumnOptions = {},
): Column<Row> => ({
  title,
  alignEnd: true,
  sortBy: (row) => shareOf(...numbersOf(row)),
  cell: (row) => formatShare(...numbersOf(row)),
  ...options,
})

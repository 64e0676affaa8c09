import { cut, oneLine, widthOf } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string
  /** Never cut: somebody will copy it. */
  readonly whole?: boolean
  /** Colours a finished cell; must not change its width. */
  readonly style?: (cell: string, row: Row) => string
}

const gap = '  '
const narrowest = 6

/** Takes from the widest column, cell by cell, until the line fits: short columns stay whole, the long one pays. */
function narrow(widths: number[], available: number, whole: readonly boolean[]): void {
  for (let total = widths.reduce((sum, width) => sum + width, 0); total > available; total--) {
    const payable = widths.map((width, index) => (whole[index] ? 0 : width))
    const widest = payable.indexOf(Math.max(...payable))
    if ((payable[widest] as number) <= narrowest) return
    widths[widest] = (widths[widest] as number) - 1
  }
}

/** Lines of a table no wider than `width` cells; cells are cut with `…`, columns without any value are left out. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, heading = (title) => title }: { width: number; heading?: (title: string) => string },
): string[] {
  const filled = columns
    .map((column) => ({ ...column, cells: rows.map((row) => oneLine(column.value(row))) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''))
  const widths = filled.map(({ title, cells }) =>
    cells.reduce((most, cell) => Math.max(most, widthOf(cell)), title.length),
  )
  narrow(
    widths,
    width - gap.length * (filled.length - 1),
    filled.map(({ whole }) => whole === true),
  )

  const line = (cellAt: (index: number) => string, styled: (cell: string, index: number) => string) =>
    filled
      .map((_, index) => {
        const cell = cut(cellAt(index), widths[index] as number)
        const padding = index === filled.length - 1 ? 0 : (widths[index] as number) - widthOf(cell)
        return (cell === '' ? '' : styled(cell, index)) + ' '.repeat(padding)
      })
      .join(gap)
      .trimEnd()

  return [
    line((index) => (filled[index] as Column<Row>).title, heading),
    ...rows.map((row, number) =>
      line(
        (index) => filled[index]?.cells[number] as string,
        (cell, index) => filled[index]?.style?.(cell, row) ?? cell,
      ),
    ),
  ]
}

import type { Series } from '../../../src/serve/admin/contract.ts'
import { nothing } from '../format/number.ts'
import { At } from '../parts/moment.tsx'
import { Table } from '../parts/table.tsx'
import type { Chart, Point } from './chart.ts'

export function ChartTable({ chart, series }: { readonly chart: Chart; readonly series: Series }) {
  return (
    <div class="chart-table">
      <Table<Point>
        label={`${chart.title}, newest first`}
        rows={series.points.toReversed()}
        keyOf={({ at }) => String(at)}
        columns={[
          { title: 'Time', cell: ({ at }) => <At at={at} /> },
          ...chart.lines.map(({ name, value }) => ({
            title: name,
            end: true,
            cell: (point: Point) => {
              const number = value(point)
              return number === null ? nothing : chart.write(number)
            },
          })),
        ]}
      />
    </div>
  )
}

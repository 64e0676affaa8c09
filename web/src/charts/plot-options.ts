import type uPlot from 'uplot'
import { type Chart, lonely, tickText } from './chart.ts'
import { colourOf, veil } from './colours.ts'

export interface PlotEvents {
  /** Index of the point under the pointer. */
  over(index: number | null): void
  /** A time range was selected by dragging, in milliseconds since the epoch. */
  chosen(from: number, to: number): void
}

export const plotHeight = 150

export function plotOptions(chart: Chart, width: number, events: PlotEvents): uPlot.Options {
  const axis = { stroke: colourOf('--text-quiet'), font: '11px Inter, system-ui, sans-serif' }
  const grid = { stroke: colourOf('--line'), width: 1 }
  return {
    width,
    height: plotHeight,
    padding: [10, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, sync: { key: 'toolway' }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: { y: { range: (_, __, highest) => [0, Math.max(highest * 1.08, Number.MIN_VALUE) || 1] } },
    axes: [
      { ...axis, grid: { show: false }, ticks: { ...grid, size: 4 }, size: 26, gap: 4, space: 70, values: clockValues },
      {
        ...axis,
        grid,
        ticks: { show: false },
        size: 56,
        values: (_, values) => values.map((value) => tickText(chart, value)),
      },
    ],
    series: [{}, ...chart.lines.map(({ name, colour, dash, fill }) => drawn(name, colourOf(colour), dash, fill))],
    hooks: {
      setCursor: [(plot) => events.over(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width: drawnOut } = plot.select
          if (drawnOut < 8) return
          const at = (position: number) => plot.posToVal(position, 'x') * 1000
          events.chosen(at(left), at(left + drawnOut))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}

const drawn = (label: string, stroke: string, dash?: readonly number[], fill?: boolean): uPlot.Series => ({
  label,
  stroke,
  width: 1.5,
  points: {
    show: true,
    size: 4,
    fill: stroke,
    filter: (plot, index) => lonely((plot.data[index] ?? []) as (number | null)[]),
  },
  ...(dash && { dash: [...dash] }),
  ...(fill && { fill: veil(stroke) }),
})

const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** Shows seconds only if ticks are less than a minute apart. */
const clockValues = (_: uPlot, ticks: number[]): string[] => {
  const step = (ticks[1] ?? 60) - (ticks[0] ?? 0)
  return ticks.map((tick) => (step < 60 ? seconds : minutes).format(tick * 1000))
}

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useSignal } from '@preact/signals'
import type { Series } from '../../../src/admin/contract.ts'
import { isDark } from '../shell/theme.ts'
import { type Chart, describeChart, isolatedPoints, logarithmicRange, plotData, tickLabel } from './chart.ts'

interface PlotProps {
  readonly chart: Chart
  readonly series: Series
  readonly events: PlotEvents
}

/**
 * Draws a chart. It is recreated when the theme changes; otherwise only the data is updated. Load this file on demand:
 * uPlot is the largest dependency, and few pages have charts.
 */
export function Plot({ chart, series, events }: PlotProps) {
  const element = useRef<HTMLDivElement>(null)
  const plot = useSignal<uPlot | undefined>(undefined)
  const latest = useRef(events)
  latest.current = events
  const dark = isDark()

  useEffect(() => {
    const stableEvents: PlotEvents = {
      onHover: (index) => latest.current.onHover(index),
      onSelect: (from, to) => latest.current.onSelect(from, to),
    }
    const host = element.current as HTMLDivElement
    const created = new uPlot(plotOptions(chart, host.clientWidth, stableEvents), [[], []], host)
    const observer = new ResizeObserver(() => created.setSize({ width: host.clientWidth, height: plotHeight }))
    observer.observe(host)
    plot.value = created
    return () => {
      observer.disconnect()
      created.destroy()
    }
  }, [chart, dark])

  const made = plot.value
  useEffect(() => {
    made?.batch(() => {
      made.setData(plotData(series, chart) as uPlot.AlignedData, false)
      made.setScale('x', { min: series.from / 1000, max: series.to / 1000 })
    })
  }, [chart, series, made])

  return <div class="plot" role="img" aria-label={describeChart(series, chart)} ref={element} />
}

interface PlotEvents {
  /** Called with the index of the point under the pointer; null if there is none. */
  onHover(index: number | null): void
  /** Called when a time range has been selected by dragging. The times are in milliseconds since the epoch. */
  onSelect(from: number, to: number): void
}

const plotHeight = 150

function plotOptions(chart: Chart, width: number, events: PlotEvents): uPlot.Options {
  const axis = { stroke: resolveColour('--text-quiet'), font: '11px Inter, system-ui, sans-serif' }
  const grid = { stroke: resolveColour('--line'), width: 1 }
  return {
    width,
    height: plotHeight,
    padding: [10, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, sync: { key: 'toolway' }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: {
      y: chart.logarithmic
        ? { distr: 3, range: (_, lowest, highest) => logarithmicRange(lowest, highest) }
        : { range: (_, __, highest) => [0, Math.max(highest * 1.08, Number.MIN_VALUE) || 1] },
    },
    // Fills the area between a line and the one below it.
    bands: chart.stacked ? chart.lines.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
    axes: [
      { ...axis, grid: { show: false }, ticks: { ...grid, size: 4 }, size: 26, gap: 4, space: 70, values: timeLabels },
      {
        ...axis,
        grid,
        ticks: { show: false },
        size: 56,
        values: (_, values) => values.map((value) => tickLabel(chart, value)),
      },
    ],
    series: [
      {},
      ...chart.lines.map(({ name, colour, dash, fill }) => seriesOptions(name, resolveColour(colour), dash, fill)),
    ],
    hooks: {
      setCursor: [(plot) => events.onHover(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width: selected } = plot.select
          if (selected < 8) return
          const at = (position: number) => plot.posToVal(position, 'x') * 1000
          events.onSelect(at(left), at(left + selected))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}

const seriesOptions = (label: string, stroke: string, dash?: readonly number[], fill?: boolean): uPlot.Series => ({
  label,
  stroke,
  width: 1.5,
  points: {
    show: true,
    size: 4,
    fill: stroke,
    filter: (plot, index) => isolatedPoints((plot.data[index] ?? []) as (number | null)[]),
  },
  ...(dash && { dash: [...dash] }),
  ...(fill && { fill: translucent(stroke) }),
})

const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** The labels on the time axis. They contain seconds only if ticks are less than a minute apart. */
const timeLabels = (_: uPlot, ticks: number[]): string[] => {
  const step = (ticks[1] ?? 60) - (ticks[0] ?? 0)
  return ticks.map((tick) => (step < 60 ? seconds : minutes).format(tick * 1000))
}

/** The value of a custom property in the current theme. Needed because a canvas cannot use custom properties. */
function resolveColour(name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  probe.hidden = true
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const translucent = (colour: string): string => `color-mix(in srgb, ${colour} 14%, transparent)`

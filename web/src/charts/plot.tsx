import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useSignal } from '@preact/signals'
import type { Series } from '../../../src/serve/admin/contract.ts'
import { isDark } from '../shell/theme.ts'
import { type Chart, columnsOf } from './chart.ts'
import { type PlotEvents, plotHeight, plotOptions } from './plot-options.ts'

interface PlotProps {
  readonly chart: Chart
  readonly series: Series
  readonly events: PlotEvents
}

/** Recreated when the theme changes; otherwise only the data is updated. */
export function Plot({ chart, series, events }: PlotProps) {
  const element = useRef<HTMLDivElement>(null)
  const plot = useSignal<uPlot | undefined>(undefined)
  const latest = useRef(events)
  latest.current = events
  const dark = isDark()

  useEffect(() => {
    const handed: PlotEvents = {
      over: (index) => latest.current.over(index),
      chosen: (from, to) => latest.current.chosen(from, to),
    }
    const drawing = draw(element.current as HTMLDivElement, chart, handed, (made) => (plot.value = made))
    return () => drawing.abort()
  }, [chart, dark])

  const made = plot.value
  useEffect(() => {
    made?.batch(() => {
      made.setData(columnsOf(series, chart) as uPlot.AlignedData, false)
      made.setScale('x', { min: series.from / 1000, max: series.to / 1000 })
    })
  }, [chart, series, made])

  return <div class="plot" ref={element} />
}

/** Loads uPlot on demand: it is the largest dependency, and only the overview needs it. */
function draw(host: HTMLElement, chart: Chart, events: PlotEvents, done: (plot: uPlot) => void): AbortController {
  const stop = new AbortController()
  void import('uplot').then(({ default: Drawing }) => {
    if (stop.signal.aborted) return
    const made = new Drawing(plotOptions(chart, host.clientWidth, events), [[], []], host)
    const resized = new ResizeObserver(() => made.setSize({ width: host.clientWidth, height: plotHeight }))
    resized.observe(host)
    stop.signal.addEventListener('abort', () => {
      resized.disconnect()
      made.destroy()
    })
    done(made)
  })
  return stop
}

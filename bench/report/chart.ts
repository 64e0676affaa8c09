import { callsPerSecond, compare } from '../measure/comparison.ts'
import { median } from '../measure/statistics.ts'
import { yardstick, yardstickAgain } from '../scenarios/yardstick.ts'
import type { Report } from './report.ts'

const width = 760
const labels = 300
const rowHeight = 26
const top = 44

/** Calls per second at 16 in flight, as bars: ours, the yardstick and the peers of the same run. Readable on light and dark. */
export function chart({ series }: Report): string {
  const arms = series.find(({ scenario, inFlight }) => scenario === 'calls' && inFlight === 16)?.arms ?? {}
  const base = arms[yardstick] ?? []
  const bars = Object.entries(arms)
    .filter(([name, samples]) => samples.length > 0 && name !== 'direct' && name !== yardstickAgain)
    .map(([name, samples]) => ({
      name,
      value: median(samples.map(callsPerSecond)),
      // The same figure as in the table: round by round.
      ratio: name === yardstick ? 1 : compare(samples, [base, arms[yardstickAgain] ?? base], callsPerSecond).ratio,
    }))
    .sort((a, b) => b.ratio - a.ratio)
  const scale = (width - labels - 130) / Math.max(1, ...bars.map(({ ratio }) => ratio))
  const height = top + bars.length * rowHeight + 16
  const rows = bars.map(({ name, value, ratio }, at) => {
    const y = top + at * rowHeight
    const length = Math.max(1, ratio * scale)
    return [
      `<text x="${labels - 8}" y="${y + 14}" text-anchor="end">${escaped(isOurs(name) ? `Toolway, ${name}` : name)}</text>`,
      `<rect x="${labels}" y="${y}" width="${length.toFixed(1)}" height="18" rx="2" fill="${colour(name)}"/>`,
      `<text x="${(labels + length + 6).toFixed(1)}" y="${y + 14}">${ratio.toFixed(2)}× (${Math.round(value)}/s)</text>`,
    ].join('')
  })
  const line = labels + scale
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Calls per second as a multiple of the bare proxy">
<style>text{font:13px system-ui,sans-serif;fill:#6b7280}.title{font-weight:600;font-size:15px}</style>
<text class="title" x="8" y="22">Calls per second, 16 in flight, as a multiple of the bare proxy</text>
<line x1="${line.toFixed(1)}" x2="${line.toFixed(1)}" y1="${top - 8}" y2="${height - 10}" stroke="#9ca3af" stroke-dasharray="3 3"/>
${rows.join('\n')}
</svg>
`
}

const isOurs = (name: string) => /^(stdio|HTTP) server/.test(name)

const colour = (name: string): string => {
  if (name === yardstick) return '#9ca3af'
  return isOurs(name) ? '#2563eb' : '#d97706'
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

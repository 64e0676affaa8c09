import { readFileSync } from 'node:fs'

interface Figures {
  readonly callsPerSecond: number
  readonly cpuMicros: number
  readonly p99Ms: number
  readonly p50Ms: number
}

interface Gateway {
  readonly name: string
  readonly does: string
  readonly stdio: Figures
  readonly http: Figures
  readonly residentMiB: number
}

interface Published {
  readonly version: string
  readonly measured: string
  readonly machine: string
  readonly rounds: number
  readonly baseline: string
  readonly gateways: readonly Gateway[]
}

/** The figures that docs/performance.md shows: one run on a quiet machine, entered by hand. */
const published = JSON.parse(readFileSync(new URL('../published.json', import.meta.url), 'utf8')) as Published

const begin = '<!-- from bench/published.json -->'
const end = '<!-- end -->'

/** The page with the table of the published figures between its marks. */
export function withPublishedTable(page: string): string {
  const [before = '', rest = ''] = page.split(begin)
  const [, after = ''] = rest.split(end)
  return `${before}${begin}\n${table()}\n${end}${after}`
}

function table(): string {
  const { version, measured, machine, rounds, gateways } = published
  const rows = gateways.map(({ name, does, stdio, http, residentMiB }) => {
    const cells = [
      name,
      does,
      calls(stdio),
      cpu(stdio),
      p99(stdio),
      calls(http),
      cpu(http),
      p99(http),
      p50s(stdio, http),
    ]
    const line = [...cells, `${residentMiB} MiB`].join(' | ')
    return name.startsWith('Toolway') ? `| **${line.replace(' |', '** |')} |` : `| ${line} |`
  })
  return `Toolway ${version}, ${measured}, on ${machine}; one run, ${rounds} rounds, all gateways in turns.

| | | stdio: calls/s | CPU per call | p99 | HTTP: calls/s | CPU per call | p99 | p50, 1 in flight | memory |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`
}

const calls = ({ callsPerSecond }: Figures): string => callsPerSecond.toLocaleString('en')
const cpu = ({ cpuMicros }: Figures): string => `${cpuMicros.toLocaleString('en')} µs`
const p99 = ({ p99Ms }: Figures): string => `${p99Ms} ms`
const p50s = (stdio: Figures, http: Figures): string => `${stdio.p50Ms.toFixed(2)}, ${http.p50Ms.toFixed(2)} ms`

const width = 760
const labels = 230
const rowHeight = 26
const top = 44

/** CPU time per call as bars, for servers over stdio and over HTTP. Readable on light and dark. */
export function publishedChart(): string {
  const bars = published.gateways.flatMap(({ name, stdio, http }) => [
    { name, over: 'stdio', micros: stdio.cpuMicros },
    { name, over: 'HTTP', micros: http.cpuMicros },
  ])
  const scale = (width - labels - 140) / Math.max(...bars.map(({ micros }) => micros))
  const height = top + bars.length * rowHeight + 16
  const rows = bars.map(({ name, over, micros }, at) => {
    const y = top + at * rowHeight
    const length = micros * scale
    const label = over === 'stdio' ? `<text x="${labels - 8}" y="${y + 14}" text-anchor="end">${name}</text>` : ''
    const bar = `<rect x="${labels}" y="${y}" width="${length.toFixed(1)}" height="18" rx="2" fill="${colour(name)}"/>`
    const figure = `<text x="${(labels + length + 6).toFixed(1)}" y="${y + 14}">${micros.toLocaleString('en')} µs, ${over}</text>`
    return label + bar + figure
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="CPU time per call of each gateway">
<style>text{font:13px system-ui,sans-serif;fill:#6b7280}.title{font-weight:600;font-size:15px}</style>
<text class="title" x="8" y="22">CPU time per call, 16 in flight (shorter is better)</text>
${rows.join('\n')}
</svg>
`
}

function colour(name: string): string {
  if (name === published.baseline) return '#9ca3af'
  return name.startsWith('Toolway') ? '#2563eb' : '#d97706'
}

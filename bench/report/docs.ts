import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { percent, type Row } from '../measure/verdict.ts'
import { chart } from './chart.ts'
import type { Report } from './report.ts'
import { count } from './table.ts'

const docs = (path: string) => fileURLToPath(new URL(`../../docs/${path}`, import.meta.url))

const begin = '<!-- manual section: kept when the rest is generated again -->'
const end = '<!-- end of the manual section -->'

/** Writes docs/performance.md and its chart from one run; keeps the manual section between the marks. */
export async function writeDocs(report: Report): Promise<void> {
  await mkdir(docs('images'), { recursive: true })
  await writeFile(docs('images/performance.svg'), chart(report))
  const before = await readFile(docs('performance.md'), 'utf8').catch(() => '')
  const [, kept = '\n'] = before.split(begin)
  const byHand = kept.split(end, 1)[0] as string
  await writeFile(docs('performance.md'), `${page(report)}\n${begin}${byHand}${end}\n`)
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ what, measured, target, verdict, spread, note }) => {
    const told = measured === '' ? (note ?? '') : measured
    return `| ${[what, told, target, verdict === 'missed' ? '**missed**' : verdict, spread].map(cell).join(' | ')} |`
  })
  return ['| what | measured | target | verdict | spread |', '| --- | --- | --- | --- | --- |', ...lines].join('\n')
}

function page(report: Report): string {
  const { rows, machine, node, date, rounds, turnSeconds, others } = report
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))]
  const judged = Object.entries(count(rows))
    .filter(([verdict]) => verdict !== 'for information')
    .map(([verdict, number]) => `${number} ${verdict}`)
    .join(', ')
  const sections = scenarios.map((name) => `## ${name}\n\n${table(rows.filter(({ scenario }) => scenario === name))}\n`)
  return `<!-- Written by \`npm run bench -- --write-docs\`, except for the manual section at the end. -->
# Performance

![Each gateway's calls per second, as a multiple of the bare proxy's](images/performance.svg)

Verdicts: ${judged}. Measured on ${date.slice(0, 10)}: ${machine}, Node ${node}, ${rounds} rounds of ${turnSeconds} s for each gateway.
Other processes used ${percent(others.median)} of the CPU (median of the rounds; maximum ${percent(others.most)}).

\`\`\`sh no-test
npm run bench                        # these tables, without the peers
npm run bench -- --peers             # also installs other gateways into a temporary folder and measures them
npm run bench -- --only calls        # one scenario; --rounds N, --seconds N, --json
npm run bench -- --peers --write-docs
npm run soak -- --minutes 30         # growth of memory, descriptors and timers
node bench/profile.ts stdio          # CPU profile of a call: stdio, http, large, cache, stdio --list
\`\`\`

## How to read this

- **Compare ratios, not absolute figures**, which depend on the machine and the day. The baseline is a
  twenty-line reverse proxy built on \`node:http\`, in front of an HTTP server that answers from prepared bytes. \`2.00×\` is
  twice the proxy's figure. Higher is better for calls/s; lower is better for everything else.
- **Measurements are interleaved in one run**: proxy, Toolway and peers take turns, and each round starts with a different
  one. Each has five seconds to warm up. The ratio is computed per round; the tables show the median, minimum and maximum.
- **Noise** is the deviation of the baseline from a second instance of itself, or the spread of the ratios, whichever is
  larger. If the distance to the target is smaller than the noise, or fewer than three quarters of the rounds agree, the
  verdict is *undecided*: use a quieter machine or more rounds. A round is an *outlier* if it is more than three deviations
  from the median; it still counts.
- **The load generator is the same for all**. It runs in a separate process, sends prepared bytes on keep-alive sockets
  without an HTTP library, and checks the status, text and request id of each response.
- **CPU per call** covers the gateway process with all its threads, but not the servers behind it.
- **All Toolway features are on**: agents and rules, argument validation, limits, breaker, redacted audit, pinned
  definitions. *Read* means that the tool is in \`readTools\`, and its audit record is on disk within a second. *Write* means
  that the record is on disk before the response. *2026-07-28* is the stateless revision; all other rows use sessions
  in revision 2025-11-25.
- **Peers** are other gateways, installed from package registries and run with their default settings. They do less: they
  have no policy and no audit log. A peer that could not be installed or started is listed with the reason.

${sections.join('\n')}`
}

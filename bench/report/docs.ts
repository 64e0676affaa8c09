import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { percent, type Row } from '../measure/verdict.ts'
import { chart } from './chart.ts'
import type { Report } from './report.ts'
import { count } from './table.ts'

const docs = (path: string) => fileURLToPath(new URL(`../../docs/${path}`, import.meta.url))

const begin = '<!-- by hand: this part stays when the rest is written anew -->'
const end = '<!-- end of what is written by hand -->'

/** Writes docs/performance.md and its chart from one run; what people have added between the marks stays. */
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
  return `<!-- Written by \`npm run bench -- --write-docs\`, except for what stands between the marks at the end. -->
# Performance

![Calls a second of each gateway, as a multiple of the bare proxy](images/performance.svg)

${judged}. Measured on ${date.slice(0, 10)}: ${machine}, Node ${node}, ${rounds} rounds with turns of ${turnSeconds} s.
Other processes took ${percent(others.median)} of the machine (median of the rounds, at most ${percent(others.most)}).

\`\`\`sh no-test
npm run bench                        # this table, without the other gateways
npm run bench -- --peers             # installs other gateways into a temporary folder and measures them beside ours
npm run bench -- --only calls        # one scenario; --rounds N, --seconds N, --json
npm run bench -- --peers --write-docs
npm run soak -- --minutes 30         # slopes of memory, descriptors and timers
node bench/profile.ts stdio          # where the time of a call goes: stdio, http, large, cache, stdio --list
\`\`\`

## How to read this

- **Ratios count, absolute figures do not.** They are those of this machine on that day. The yardstick is a reverse proxy
  of twenty lines on \`node:http\` in front of an HTTP server that answers from prepared bytes; \`2.00×\` is twice the
  proxy's figure. More is better for calls/s, less for everything else.
- **Everything takes turns in one run**: proxy, Toolway, peers, again and again, each round beginning with another one,
  after five seconds for each to warm up. A ratio is taken within each round, and the median of the rounds is reported, with the least and the most of them.
- **Noise** is what the yardstick shows against itself, in a second process, or what the ratios scatter by, whichever is
  more. Where the distance to the target is smaller than that, or fewer than three quarters of the rounds agree, the
  verdict is *undecided*: run it on a quieter machine, or with more rounds. A round is *stray* if it lies more than three deviations from the median; it still counts.
- **One load generator for all**, in its own process: prepared bytes on kept-alive sockets, no HTTP library. Each answer is
  checked: status, text, and the id of the request that it answers.
- **CPU per call** is that of the gateway's process with all its threads, not of the servers behind it.
- **Everything is on** in Toolway: agents and rules, argument validation, limits, breaker, redacted audit, pinned
  definitions. *Read* means that the tool is declared in \`readTools\`: its audit record is on disk within a second. *Write*
  means that it is on disk before the answer. *2026-07-28* is the stateless revision, otherwise sessions of 2025-11-25.
- **Peers** come as the registries offer them, with their defaults, and do less: no policy, no audit. One that could not
  be installed or started is listed with the reason.

${sections.join('\n')}`
}

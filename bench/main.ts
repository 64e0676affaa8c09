/**
 * `npm run bench`: what a call through Toolway costs, in multiples of the barest proxy there can be, measured side by
 * side in one run. Every process listens on loopback, is bounded in time and stops with this one.
 */

import { readFile } from 'node:fs/promises'
import { readArguments, usage } from './arguments.ts'
import { openFolders } from './folders.ts'
import { startGenerator } from './load/generator-process.ts'
import { runRounds } from './measure/rounds.ts'
import { type Row, without } from './measure/verdict.ts'
import { findPeers } from './peers/index.ts'
import { installer } from './peers/install.ts'
import { type Kept, type Report, reportOf } from './report/report.ts'
import { readable } from './report/table.ts'
import type { Bench } from './scenario.ts'
import { scenarios } from './scenarios/index.ts'

const options = readArguments(process.argv.slice(2))
const unknown = options.only.filter((name) => !scenarios.some((scenario) => scenario.name === name))
if (options.help || unknown.length > 0) {
  const names = scenarios.map(({ name, title }) => `  ${name.padEnd(14)}  ${title}`).join('\n')
  process.stdout.write(`${usage}\nScenarios:\n${names}\n`)
  process.exit(unknown.length > 0 ? 2 : 0)
}

const report =
  options.from === undefined ? await measure() : (JSON.parse(await readFile(options.from, 'utf8')) as Report)
process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : readable(report))

async function measure(): Promise<Report> {
  const note = (line: string) => process.stderr.write(`${line}\n`)
  await using open = new AsyncDisposableStack()
  const folders = open.use(await openFolders())
  const generator = open.use(startGenerator())
  const kept: Kept[] = []

  const bench: Bench = {
    generator,
    rounds: options.rounds,
    turnMs: options.turnMs,
    peers: options.peers ? findPeers(installer(await folders.make('peers'), note, options.programs)) : [],
    folder: folders.make,
    async series(scenario, arms, chosen) {
      note(`${scenario}: ${arms.length} take turns, ${chosen.inFlight} in flight`)
      const series = await runRounds(generator, arms, { rounds: options.rounds, turnMs: options.turnMs, ...chosen })
      kept.push({ scenario, series })
      return series
    },
    note,
  }

  const rows: Row[] = []
  const chosen = scenarios.filter(({ name }) => options.only.length === 0 || options.only.includes(name))
  for (const { name, title, run } of chosen) {
    note(`${name}: ${title}`)
    try {
      rows.push(...(await run(bench)))
    } catch (thrown) {
      rows.push(without(name, title, 'failed', String(thrown)))
    }
  }

  return reportOf(rows, kept, { rounds: options.rounds, turnSeconds: options.turnMs / 1000 })
}

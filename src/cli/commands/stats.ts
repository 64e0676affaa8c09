import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { systemClock } from '../../core/clock.ts'
import { createBudgets } from '../../core/limits/budget.ts'
import type { By, StatsTable } from '../../telemetry/stats/stats.ts'
import type { OptionsOf } from '../command-table.ts'
import { canErase, createOutput, type Output, type Shell, UsageError } from '../kit.ts'
import { load, openLog } from '../load.ts'
import { findRunningGateway, poll } from '../running-gateway.ts'
import { table } from '../table.ts'

type StatsOptions = OptionsOf<'stats'>

/** Shows the running gateway's statistics, or those that are kept in the state folder (G9). */
export async function stats(shell: Shell, options: StatsOptions): Promise<void> {
  if (options.watch && options.output !== undefined)
    throw new UsageError('--watch and --output cannot be used together.')
  const output = createOutput(shell, options.json)
  await using open = new AsyncDisposableStack()
  const ask = await (options.offline ? keptStats(shell, options, open) : gatewayStats(shell, options))
  const fetch = () => {
    const from = options.last === undefined ? undefined : Math.max(0, systemClock.now() - options.last)
    const tables = options.by ? [options.by] : defaultTables
    return Promise.all(tables.map(async (by) => withErrorRates(await ask(by, from))))
  }
  if (options.watch) await watch(fetch, options, shell, output)
  else await once(await fetch(), options, shell, output)
}

const defaultTables: readonly By[] = ['agent', 'server', 'operation', 'agent-operation']

type AskStats = (by: By, from?: number) => Promise<StatsTable>

async function gatewayStats(shell: Shell, options: StatsOptions): Promise<AskStats> {
  const { get } = await findRunningGateway(shell, options)
  return (by, from) => get<StatsTable>(`stats?by=${by}&from=${from ?? ''}`)
}

async function keptStats(shell: Shell, options: StatsOptions, open: AsyncDisposableStack): Promise<AskStats> {
  const { openHistory } = await import('../../runtime/history.ts')
  const { config } = await load(shell, options)
  const log = openLog(shell, options.log ?? 'error')
  const kept = { budgets: createBudgets(), captures: { find: () => undefined }, redact: String }
  const history = open.use(openHistory(config, { ...kept, clock: systemClock, log }))
  return async (by, from = 0) => {
    const to = systemClock.now()
    return (await history?.past.stats(by, { from, to })) ?? { by, since: to, to, rows: [] }
  }
}

const withErrorRates = ({ rows, ...table }: StatsTable) => ({
  ...table,
  rows: rows.map((row) => ({ ...row, errorRate: row.errors / row.calls })),
})

type Table = ReturnType<typeof withErrorRates>
type Tables = readonly Table[]

async function once(tables: Tables, options: StatsOptions, shell: Shell, output: Output): Promise<void> {
  const { output: file } = options
  if (file === undefined) return show(tables, output)
  // Output to a file has the full width and no colours.
  const lines = statsLines(tables, { width: Number.POSITIVE_INFINITY, paint: (_, text) => text })
  const text = options.json ? JSON.stringify({ stats: tables }, undefined, 2) : lines.join('\n')
  await writeFile(resolve(shell.cwd, file), `${text}\n`, { mode: 0o600 }).catch((error: Error) => {
    throw new UsageError(`Cannot write ${file}: ${error.message}.`)
  })
  output.note(`Wrote ${file}.`)
}

function show(tables: Tables, output: Output): void {
  if (output.json) output.value({ stats: tables })
  else for (const line of statsLines(tables, output)) output.print(line)
}

const clearScreen = '\x1b[H\x1b[2J\x1b[3J'

/** Refreshes until interrupted. */
async function watch(fetch: () => Promise<Tables>, options: StatsOptions, shell: Shell, output: Output) {
  for await (const tables of poll(fetch, options.every, { shell, output, clock: systemClock })) {
    if (canErase(shell.stdout, shell.env) && !output.json) shell.stdout.write(clearScreen)
    show(tables, output)
  }
}

type Row = Table['rows'][number]

/** One table per grouping, and the start of the counting period. */
function statsLines(tables: Tables, { width, paint }: Pick<Output, 'width' | 'paint'>): string[] {
  const since = tables.map((one) => one.since)[0]
  const heading = since === undefined ? [] : [paint('dim', `Since ${new Date(since).toISOString()}`)]
  return [...heading, ...tables.flatMap((one) => ['', ...tableLines(one, { width, paint })])]
}

function tableLines({ by, rows }: Table, { width, paint }: Pick<Output, 'width' | 'paint'>): string[] {
  if (rows.length === 0) return [`Calls by ${by}: none yet.`]
  const redIfAny = (key: 'errors' | 'denials') => (cell: string, row: Row) => (row[key] > 0 ? paint('red', cell) : cell)
  return table<Row>(
    [
      { title: by.toUpperCase(), value: ({ name }) => name },
      { title: 'CALLS', value: ({ calls }) => String(calls), whole: true },
      { title: 'PER SECOND', value: ({ perSecond }) => digits(perSecond), whole: true },
      { title: 'ERRORS', value: errorText, style: redIfAny('errors'), whole: true },
      { title: 'DENIALS', value: ({ denials }) => String(denials), style: redIfAny('denials'), whole: true },
      { title: 'AVERAGE', value: ({ averageMs }) => time(averageMs), whole: true },
      { title: 'P50', value: ({ p50Ms }) => time(p50Ms), whole: true },
      { title: 'P95', value: ({ p95Ms }) => time(p95Ms), whole: true },
      { title: 'P99', value: ({ p99Ms }) => time(p99Ms), whole: true },
    ],
    rows,
    { width, heading: (title) => paint('dim', title) },
  )
}

/** The number of errors and their share: `3 (1.2 %)`. */
const errorText = ({ errors, errorRate }: Row): string =>
  errors === 0 ? '0' : `${errors} (${digits(100 * errorRate)} %)`

/** Rounds to three significant digits. */
const digits = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** A duration: `0.42 ms`, `37 ms`, `1.5 s`; `-` if every call was denied. */
function time(ms: number | null): string {
  if (ms === null) return '-'
  return ms < 1000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`
}

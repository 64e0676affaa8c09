/**
 * `node bench/work.ts [--json] [--list SCENARIO] [--write]`: the work of one warm call, counted and not timed, so that it
 * says the same on every machine. `--list` prints the functions and the bytes that each allocates, `--write` sets the budget that the tests hold.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { openFolders } from './folders.ts'
import { startChild } from './targets/child.ts'
import { countWork, type Work, workScenarios } from './work/measure.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    list: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
await using open = new AsyncDisposableStack()
const { make: folder } = open.use(await openFolders())
const scenarios = workScenarios(open.use(await startChild('./echo-http.ts', [])).url)

const budgetFile = new URL('./work/budget.json', import.meta.url)
const found: Record<string, Work> = {}
for (const scenario of scenarios) {
  if (values.list !== undefined && values.list !== scenario.name) continue
  const { work, functions, bytes } = await countWork(scenario, await folder('gateway'))
  found[scenario.name] = work
  if (values.list !== undefined) {
    printByFile('invocations', functions)
    printByFile('bytes', bytes)
  }
  if (!values.json) {
    const { files, invocations, promises } = work
    const counts = `${files} files, ${work.functions} functions, ${invocations} invocations, ${promises} promises`
    console.log(`${scenario.name.padEnd(25)} ${counts}, ${work.bytes} bytes`)
  }
}
if (values.json) console.log(JSON.stringify(found, undefined, 2))
if (values.write) {
  const known = JSON.parse(await readFile(budgetFile, 'utf8').catch(() => '{}')) as object
  await writeFile(budgetFile, `${JSON.stringify({ ...known, ...found }, undefined, 2)}\n`)
}

/** Prints what each file and each of its functions took, most first. */
function printByFile(what: string, counts: ReadonlyMap<string, number>): void {
  console.log(`${what} per call:`)
  const byFile = Map.groupBy(counts, ([name]) => name.split(':', 1)[0] as string)
  const sum = (all: readonly [string, number][]) => all.reduce((total, [, count]) => total + count, 0)
  for (const [file, all] of [...byFile].sort(([, a], [, b]) => sum(b) - sum(a))) {
    console.log(`${String(sum(all)).padStart(6)} ${file}`)
    for (const [name, count] of all.sort(([, a], [, b]) => b - a))
      if (count > 0) console.log(`      ${String(count).padStart(6)} ${name.split(':')[1]}`)
  }
}

/**
 * `node bench/work.ts [--json] [--list SCENARIO] [--write]`: the work of one warm call, counted and not timed, so that it
 * says the same on every machine. `--list` prints the functions, `--write` sets the budget that the tests hold.
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
  const { work, functions } = await countWork(scenario, await folder('gateway'))
  found[scenario.name] = work
  if (values.list !== undefined) {
    const byFile = Map.groupBy(functions, ([name]) => name.split(':', 1)[0] as string)
    const sum = (all: readonly [string, number][]) => all.reduce((total, [, count]) => total + count, 0)
    for (const [file, all] of [...byFile].sort(([, a], [, b]) => sum(b) - sum(a))) {
      console.log(`${String(sum(all)).padStart(5)} ${file}`)
      for (const [name, count] of all.sort(([, a], [, b]) => b - a))
        console.log(`      ${String(count).padStart(4)} ${name.split(':')[1]}`)
    }
  }
  if (!values.json) {
    const { files, functions: ran, invocations, promises, bytes } = work
    const counts = `${files} files, ${ran} functions, ${invocations} invocations, ${promises} promises, ${bytes} bytes`
    console.log(`${scenario.name.padEnd(25)} ${counts}`)
  }
}
if (values.json) console.log(JSON.stringify(found, undefined, 2))
if (values.write) {
  const known = JSON.parse(await readFile(budgetFile, 'utf8').catch(() => '{}')) as object
  await writeFile(budgetFile, `${JSON.stringify({ ...known, ...found }, undefined, 2)}\n`)
}

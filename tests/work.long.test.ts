import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openFolders } from '../bench/folders.ts'
import { startChild } from '../bench/targets/child.ts'
import { countWork, type Work, workScenarios } from '../bench/work/measure.ts'

const budget = JSON.parse(readFileSync(new URL('../bench/work/budget.json', import.meta.url), 'utf8')) as Record<
  string,
  Work
>

/** A budget is raised only on purpose: `npm run bench:work -- --write`. */
const room = 1.05

test('W16: no kind of call costs more work than its budget, plus 5 %', async () => {
  await using open = new AsyncDisposableStack()
  const { make: folder } = open.use(await openFolders())
  const { url } = open.use(await startChild('./echo-http.ts', []))
  const over: string[] = []
  for (const scenario of workScenarios(url)) {
    const { work } = await countWork(scenario, await folder('gateway'))
    for (const [what, most] of Object.entries(budget[scenario.name] ?? {})) {
      const count = work[what as keyof Work]
      if (count > most * room) over.push(`${scenario.name}: ${count} ${what} instead of ${most}`)
    }
    expect(Object.keys(budget)).toContain(scenario.name)
  }
  expect(over).toEqual([])
})

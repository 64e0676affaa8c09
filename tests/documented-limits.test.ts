import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { fixedBudgets } from '../src/core/limits/budget.ts'
import { fixedLimits } from '../src/core/limits/fixed-limits.ts'
import { serverFindingKinds } from '../src/core/source-status.ts'
import { burst, perMinute } from '../src/pipeline/refusals.ts'
import { defaultListLimits } from '../src/upstream/listing/list-reader.ts'
import { withFixedBudgets, withFixedLimits } from '../tooling/limit-tables.ts'

/** Paragraphs, each on one line. */
async function paragraphsOf(path: string): Promise<string[]> {
  const text = await readFile(new URL(`../${path}`, import.meta.url), 'utf8')
  return text.split(/\n\n|\n(?=[-|] )/).map((paragraph) => paragraph.replace(/\s+/g, ' '))
}

test.each(['README.md', 'docs/quick-start.md', 'docs/faq.md'])(
  'V4: %s says how long a call may take, that progress gives it more time, and which setting to raise',
  async (path) => {
    const facts = [/\b30 s\b/, /progress/i, /10 minutes/, /`[\w.]*timeout`/]
    expect((await paragraphsOf(path)).filter((text) => facts.every((fact) => fact.test(text)))).not.toEqual([])
  },
)

test.each([
  ['docs/concepts.md', [/breaker/, /twice as long/, /2 minutes/]],
  ['docs/configuration-reference.md', [/^\| `openFor` \|/, /Doubled/, /2 minutes/]],
  ['docs/errors/CIRCUIT_OPEN.md', [/twice as long/, /`openFor`, then 2, 4, 8 times/, /2 minutes/]],
])('J3: %s says that an open breaker stays open longer each time', async (path, facts) => {
  expect((await paragraphsOf(path)).filter((text) => facts.every((fact) => fact.test(text)))).not.toEqual([])
})

test.each(serverFindingKinds)(
  'V6: docs/operations/limits.md says what a server may send before it gets the finding %s',
  async (kind) => {
    const rows = (await paragraphsOf('docs/operations/limits.md')).filter((text) => text.startsWith('| '))
    expect(rows.filter((row) => row.includes(`\`${kind}\``))).not.toEqual([])
  },
)

test('V6: docs/security-model.md names the real limit for the entries of a list', async () => {
  const limit = `${defaultListLimits.maxEntries.toLocaleString('en')} entries per list`
  expect((await paragraphsOf('docs/security-model.md')).filter((text) => text.includes(limit))).not.toEqual([])
})

test('F11: docs/policy.md names the real number of denials that are recorded for one caller', async () => {
  const [text = ''] = (await paragraphsOf('docs/policy.md')).filter((one) => one.includes('cannot fill the disk'))
  expect([burst, perMinute / 60]).toEqual([600, 10])
  expect(text).toContain(`${burst} denials are recorded at once and ten more every second`)
})

test.each([
  ['limits.md', withFixedLimits, Object.values(fixedLimits).map(({ what }) => `| ${what} |`)],
  ['overload.md', withFixedBudgets, Object.keys(fixedBudgets).map((name) => `| \`${name}\` |`)],
])(
  'V6: docs/operations/%s lists all fixed bounds with the values that the program uses',
  async (page, withTable, rows) => {
    const text = await readFile(new URL(`../docs/operations/${page}`, import.meta.url), 'utf8')
    expect(withTable(text)).toBe(text)
    expect(rows.filter((row) => !text.includes(row))).toEqual([])
  },
)

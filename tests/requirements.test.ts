import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { requirementsPage } from '../tooling/requirements/page.ts'
import { numbersOf, requirements } from '../tooling/requirements/requirements.ts'
import { readTitles, titlesIn } from '../tooling/requirements/titles.ts'

const root = new URL('..', import.meta.url)
const all = requirements.flatMap((section) => section.requirements)
const numbers = all.flatMap(numbersOf)
const titles = readTitles()

test('every requirement has a number of its own', () => {
  expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([])
})

test('every requirement that is met or partly met is named by a test', () => {
  const named = new Set(titles.flatMap((title) => title.numbers))
  const claimed = all.filter(({ state }) => state !== 'open').flatMap(numbersOf)
  expect(claimed.filter((number) => !named.has(number))).toEqual([])
})

test('no test names an unknown requirement', () => {
  const wrong = titles.filter((title) => !title.numbers.every((number) => numbers.includes(number)))
  expect(wrong).toEqual([])
})

test('files that meet a requirement exist', () => {
  const places = new Set(all.flatMap(({ metBy }) => metBy))
  expect([...places].filter((path) => !existsSync(new URL(path, root)))).toEqual([])
})

test('docs/requirements.md is what `npm run generate` writes', async () => {
  expect(await readFile(new URL('docs/requirements.md', root), 'utf8')).toBe(requirementsPage(titles))
})

// Written so that no number follows a quotation mark here: these are titles of nothing.
const quote = "'"

test.each([
  [`test(${quote}F3: a spelling`, [['F3']]],
  [`withPart(${quote}redis${quote}, ${quote}B10, F8, F11: a fleet`, [['B10', 'F8', 'F11']]],
  [`describe(\n  \`${'B2'}/G3: a task of \${era}\`,\n  "${'T1'}: unknown"`, [['B2', 'G3'], ['T1']]],
  [`test(${quote}security: F3: nothing${quote}, () => expect(${quote}C1 controls${quote})`, []],
])('%j names %j', (text, found) => {
  expect(titlesIn(text, 'x.test.ts').map((title) => title.numbers)).toEqual(found)
})

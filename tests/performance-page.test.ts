import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { publishedChart, withPublishedTable } from '../bench/report/published.ts'

const docs = (path: string) => readFile(new URL(`../docs/${path}`, import.meta.url), 'utf8')

test('docs/performance.md and its chart show the figures of bench/published.json', async () => {
  const page = await docs('performance.md')
  expect(withPublishedTable(page)).toBe(page)
  expect(await docs('images/performance.svg')).toBe(publishedChart())
})

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const page = (path: string) => readFile(new URL(`../${path}`, import.meta.url), 'utf8')

test.each(['README.md', 'docs/quick-start.md', 'docs/faq.md'])(
  'V4: %s says how long a call may take, that progress gives it more time, and which setting to raise',
  async (path) => {
    const paragraphs = (await page(path)).split(/\n\n/).filter((text) => text.includes('A call may take 30 s'))
    expect(paragraphs).toHaveLength(1)
    expect(paragraphs[0]).toMatch(/progress/i)
    expect(paragraphs[0]).toMatch(/10\s+minutes/)
    expect(paragraphs[0]).toMatch(/`[\w.]*timeout`/)
  },
)

test.each([
  ['docs/concepts.md', /twice as long, up to 2 minutes/],
  ['docs/configuration-reference.md', /^\| `openFor` \|.*Doubled.*up to 2 minutes/m],
  ['docs/errors/CIRCUIT_OPEN.md', /twice as long:\s+`openFor`, then 2, 4, 8 times that, up to 2 minutes/],
])('J3: %s says that an open breaker stays open longer each time', async (path, said) => {
  expect(await page(path)).toMatch(said)
})

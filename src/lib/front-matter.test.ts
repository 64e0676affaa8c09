import { expect, test } from 'vitest'
import { readFrontMatter } from './front-matter.ts'

test('W4: readFrontMatter reads the YAML at the beginning of a Markdown file as JSON', async () => {
  const text = '\uFEFF---\r\nname: a\r\nmetadata:\r\n  version: 1.0\r\n  since: 2026-01-01\r\n---\r\n# Title\n---\n'
  expect(await readFrontMatter(text)).toEqual({ name: 'a', metadata: { version: 1, since: '2026-01-01' } })
})

test.each([
  ['no front matter', '# Title'],
  ['a block that is not closed', '---\nname: a\n'],
  ['no mapping', '---\n- a\n---\n'],
  ['invalid YAML', '---\na: [\n---\n'],
  ['front matter that is too large', `---\na: ${'x'.repeat(70_000)}\n---\n`],
  ['aliases that multiply', `---\na: &a [1,1,1,1,1]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n---\n`],
])('W4: readFrontMatter returns undefined for %s', async (_, text) => {
  expect(await readFrontMatter(text)).toBeUndefined()
})

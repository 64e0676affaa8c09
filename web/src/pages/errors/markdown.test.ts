import { expect, test } from 'vitest'
import { parseBlocks, parseInline } from './markdown.ts'

const pages = import.meta.glob<string>('../../../../docs/errors/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

test('E2: every error page is parsed without leftover markup', () => {
  expect(Object.keys(pages).length).toBeGreaterThan(20)
  for (const [file, page] of Object.entries(pages)) {
    const blocks = parseBlocks(page)
    expect(blocks[0], file).toEqual({ kind: 'heading', level: 1, text: file.replace(/.*\/|\.md$/g, '') })
    const texts = blocks.flatMap((block) => {
      if (block.kind === 'code') return []
      if (block.kind === 'list') return block.items
      return block.kind === 'table' ? block.rows.flat() : [block.text]
    })
    for (const text of texts) {
      const plain = parseInline(text).filter(({ code }) => !code)
      expect(plain.map((piece) => piece.text).join(''), file).not.toMatch(/`|\]\(|^\s*([|#]|- )|<!--/)
    }
  }
})

test('E2: blocks of each kind', () => {
  const page =
    '# A\n\ntext\nover lines\n\n- one\n  goes on\n- two\n\n```yaml\na: 1\n\n# b\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |'
  expect(parseBlocks(page)).toEqual([
    { kind: 'heading', level: 1, text: 'A' },
    { kind: 'text', text: 'text over lines' },
    { kind: 'list', items: ['one goes on', 'two'] },
    { kind: 'code', text: 'a: 1\n\n# b' },
    {
      kind: 'table',
      rows: [
        ['a', 'b'],
        ['1', '2'],
      ],
    },
  ])
})

test('E2: inline parts', () => {
  expect(parseInline('see `a[0]` or [B](b.md), [not a link')).toEqual([
    { text: 'see ' },
    { text: 'a[0]', code: true },
    { text: ' or ' },
    { text: 'B', link: 'b.md' },
    { text: ', ' },
    { text: '[' },
    { text: 'not a link' },
  ])
})

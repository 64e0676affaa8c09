import { expect, test } from 'vitest'
import { parseBlocks, parseInline } from './markdown.ts'

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

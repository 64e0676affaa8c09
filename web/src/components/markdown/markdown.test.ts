import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Block, parseBlocks } from './blocks.ts'
import { type Inline, isSafeUrl, parseInline } from './inline.ts'

/** Inline nodes in a short form: text as it is, others as [kind, content] or [kind, content, address]. */
const short = (source: string): unknown => parseInline(source).map(shortNode)
const shortNode = (node: Inline): unknown => {
  if (node.kind === 'text') return node.text
  if (node.kind === 'code') return ['code', node.text]
  const content = node.content.map(shortNode)
  return 'href' in node ? [node.kind, content, node.href] : [node.kind, content]
}

/** All text of a document, with addresses and languages, in the order of the source. */
const blockText = (block: Block): string => {
  switch (block.kind) {
    case 'paragraph':
    case 'heading':
      return inlineText(parseInline(block.text))
    case 'code':
      return `${block.language}\n${block.text}`
    case 'quote':
      return block.blocks.map(blockText).join('')
    case 'list':
      return block.items.flat().map(blockText).join('')
    case 'table':
      return [block.head, ...block.rows].flatMap((row) => row.map(({ text }) => inlineText(parseInline(text)))).join('')
    case 'rule':
      return ''
  }
}
const inlineText = (nodes: readonly Inline[]): string =>
  nodes
    .map((node) => {
      if (node.kind === 'text' || node.kind === 'code') return node.text
      const text = inlineText(node.content)
      return 'href' in node && node.href !== text ? `${text}${node.href}${node.title}` : text
    })
    .join('')
const wholeText = (source: string) => parseBlocks(source).map(blockText).join('')
const letters = (text: string) => text.replace(/[^\p{L}]/gu, '')

describe('G10: Markdown in answers', () => {
  test('blocks: headings, lists, quotes, code, rules, paragraphs', () => {
    const source = [
      ...['# Title #', 'Some text', 'goes on', '---', '> quoted', '> - inside', ''],
      ...[
        '1. one',
        '  - nested',
        '',
        '2. two',
        '   more',
        'lazy',
        '',
        '```ts',
        'const a = `*b*`',
        '',
        '\tindented',
        '```',
        '## C#',
      ],
    ].join('\n')
    const paragraph = (text: string) => ({ kind: 'paragraph', text })
    const list = (start: number | undefined, ...items: unknown[]) => ({ kind: 'list', start, items })
    expect(parseBlocks(source)).toEqual([
      { kind: 'heading', level: 1, text: 'Title' },
      paragraph('Some text\ngoes on'),
      { kind: 'rule' },
      { kind: 'quote', blocks: [paragraph('quoted'), list(undefined, [paragraph('inside')])] },
      list(1, [paragraph('one'), list(undefined, [paragraph('nested')])], [paragraph('two\nmore\nlazy')]),
      { kind: 'code', language: 'ts', text: 'const a = `*b*`\n\n\tindented' },
      { kind: 'heading', level: 2, text: 'C#' },
    ])
    expect(parseBlocks('In the year\n2024. it began')).toEqual([paragraph('In the year\n2024. it began')])
  })

  test('tables, with alignment, escaped bars and rows of any length', () => {
    const cell = (text: string, align?: string) => ({ text, align })
    expect(parseBlocks('| a | b |\n|:--|--:|\n| 1 \\| 2 | `x` | more |\n| one\n\nafter')).toEqual([
      {
        kind: 'table',
        head: [cell('a', 'left'), cell('b', 'right')],
        rows: [[cell('1 | 2', 'left'), cell('`x`', 'right'), cell('more')], [cell('one', 'left')]],
      },
      { kind: 'paragraph', text: 'after' },
    ])
    expect(parseBlocks('a | b\nno table')).toMatchObject([{ kind: 'paragraph' }])
  })

  test('text that is still being written', () => {
    expect(parseBlocks('```js\nlet a')).toEqual([{ kind: 'code', language: 'js', text: 'let a' }])
    expect(parseBlocks('| a | b |\n|--')).toMatchObject([{ kind: 'paragraph' }])
    expect(short('**bold and [a link](https://exa')).toEqual([
      '**bold and [a link](',
      ['link', ['https://exa'], 'https://exa'],
    ])
    expect(short('`code')).toEqual(['`code'])
  })

  test('inline: emphasis, code, escapes', () => {
    expect(short('a **b *c* d** _e_ ~~f~~ ***g***')).toEqual([
      'a ',
      ['strong', ['b ', ['emphasis', ['c']], ' d']],
      ' ',
      ['emphasis', ['e']],
      ' ',
      ['strike', ['f']],
      ' ',
      ['strong', [['emphasis', ['g']]]],
    ])
    expect(short('snake_case_name 2 * 3 * 4 \\*no\\* ``a ` b`` ~x~ ****')).toEqual([
      'snake_case_name 2 * 3 * 4 *no* ',
      ['code', 'a ` b'],
      ' ~x~ ****',
    ])
    expect(short('**加粗。**后文')).toEqual([['strong', ['加粗。']], '后文'])
    expect(short('<b onclick=alert(1)>x</b> &amp;')).toEqual(['<b onclick=alert(1)>x</b> &amp;'])
  })

  test('links and images have safe addresses only', () => {
    expect(short('[a *b*](https://x.org/a_(b)?c "T") and https://y.org/d_e.')).toEqual([
      ['link', ['a ', ['emphasis', ['b']]], 'https://x.org/a_(b)?c'],
      ' and ',
      ['link', ['https://y.org/d_e'], 'https://y.org/d_e'],
      '.',
    ])
    expect(short('[see [this](mailto:a@b.c)] (**http://z.org**)')).toEqual([
      '[see ',
      ['link', ['this'], 'mailto:a@b.c'],
      '] (',
      ['strong', [['link', ['http://z.org'], 'http://z.org']]],
      ')',
    ])
    expect(short('[![alt](https://x.org/i.png)](<https://x.org>)')).toEqual([
      ['link', [['image', ['alt'], 'https://x.org/i.png']], 'https://x.org'],
    ])
    for (const href of [
      ...[
        'javascript:alert(1)',
        'JaVaScRiPt:alert(1)',
        'data:text/html,x',
        'vbscript:x',
        'file:///etc/passwd',
        '//x.org',
      ],
      ...[
        '/admin',
        'java\tscript:alert(1)',
        ' https://x',
        'https://',
        'https://user:pass@x.org',
        'blob:https://x.org/1',
      ],
    ]) {
      expect(isSafeUrl(href), href).toBe(false)
      expect(JSON.stringify(short(`[a](${href}) ![b](${href}) <${href}>`)), href).not.toMatch(
        /\[\["(?:link|image)",\["[ab]/,
      )
    }
    expect(isSafeUrl('mailto:a@b.c', true)).toBe(false)
  })

  /** Pieces that mean something, and some text. */
  const pieces = [
    ...[
      '*',
      '**',
      '_',
      '~~',
      '`',
      '```',
      '[',
      ']',
      '](',
      ')',
      '![',
      '](https://x.org)',
      '<',
      '>',
      '\\',
      '|',
      '\n',
      '\n\n',
      ' ',
    ],
    ...[
      '# ',
      '- ',
      '1. ',
      '> ',
      '  ',
      '\t',
      '---',
      '|--|',
      '"',
      'http://',
      'word',
      'Ünïcode',
      '文字',
      '😀',
      '\r\n',
      '\0',
    ],
  ]
  const document = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 60 })
    .map((all) => all.join(''))

  test('any text can be parsed, and no letter of it is lost, added or moved', () => {
    fc.assert(
      fc.property(document, (source) => {
        expect(letters(wholeText(source))).toBe(letters(source))
      }),
      { numRuns: 500 },
    )
  })

  test('nesting is bounded, and hostile text is parsed in linear time', () => {
    // A parser that needs quadratic time would not finish so many characters within the time limit of a test.
    const hostile = [
      ...[
        '*a ',
        '**a',
        '*a**',
        '_a ',
        '~~a',
        '[',
        '![',
        '[](',
        '[a](b',
        '](',
        '[](((',
        '[a](b "',
        "[a](b '",
        '`',
        '` ``',
        '<',
      ],
      ...[
        '<https://',
        'http://%',
        'https://a(',
        'https://a)',
        '\\',
        '[*',
        '*[a]',
        '- ',
        '> ',
        '>',
        '1. ',
        '  - ',
        '\n- a',
        '\n> ',
      ],
      ...[
        '\n',
        '\n\n- ',
        '|',
        '|\n',
        '|-',
        '|\n|-\n',
        '#',
        '# ',
        '```\n',
        '~~~',
        '-',
        '\t',
        ' ',
        'a\n  - b\n',
        '*a\n',
        'a|b\n-|-\n',
      ],
    ]
    for (const piece of hostile) {
      const source = piece.repeat(Math.ceil(30_000 / piece.length))
      const blocks = parseBlocks(source)
      expect(letters(blocks.map(blockText).join('')).length, piece).toBe(letters(source).length)
      parseInline(source)
    }
    const deep = Array.from({ length: 200 }, (_, level) => `${'  '.repeat(level)}- x`).join('\n')
    expect(depthOf(parseBlocks(`${'> '.repeat(5_000)}x\n\n${deep}`))).toBeLessThan(12)
    expect(inlineDepth(parseInline(`${'*a **b '.repeat(1_000)}c${'** *'.repeat(1_000)}`))).toBeLessThan(20)
  })
})

const depthOf = (blocks: readonly Block[]): number =>
  Math.max(
    0,
    ...blocks.map((block) => {
      const inner = block.kind === 'quote' ? [block.blocks] : block.kind === 'list' ? block.items : []
      return 1 + Math.max(0, ...inner.map(depthOf))
    }),
  )

const inlineDepth = (nodes: readonly Inline[]): number =>
  Math.max(0, ...nodes.map((node) => ('content' in node ? 1 + inlineDepth(node.content) : 1)))

test('E2: a page of the documentation may have links to other pages', () => {
  const isPage = (href: string) => href.endsWith('.md')
  expect(parseInline('see `a[0]` or [B](b.md), [not a link', isPage)).toEqual([
    { kind: 'text', text: 'see ' },
    { kind: 'code', text: 'a[0]' },
    { kind: 'text', text: ' or ' },
    { kind: 'link', href: 'b.md', title: '', content: [{ kind: 'text', text: 'B' }] },
    { kind: 'text', text: ', [not a link' },
  ])
  expect(short('[B](b.md)')).toEqual(['[B](b.md)'])
})

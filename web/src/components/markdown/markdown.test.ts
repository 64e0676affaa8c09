import fc from 'fast-check'
import type { Nodes } from 'mdast'
import { describe, expect, test } from 'vitest'
import { isSafeUrl, parseMarkdown } from './parse.ts'

/** A node in a short form: text as it is, others as [type, content] or [type, content, details]. */
const shortNode = (node: Nodes): unknown => {
  if (node.type === 'text') return node.value
  if (node.type === 'image') return ['image', node.alt, node.url]
  if ('value' in node) return [node.type, node.value, ...(node.type === 'code' ? [node.lang] : [])]
  if (!('children' in node)) return [node.type]
  const content = node.children.map(shortNode)
  if (node.type === 'link') return ['link', content, node.url]
  if (node.type === 'heading') return ['heading', content, node.depth]
  if (node.type === 'list') return ['list', content, node.start]
  if (node.type === 'table') return ['table', content, node.align]
  return [node.type, content]
}
const blocks = (source: string) => parseMarkdown(source)?.map(shortNode)

/** The content of a single paragraph. */
const short = (source: string): unknown => {
  const [first, ...rest] = parseMarkdown(source) ?? []
  expect(rest).toEqual([])
  return first && 'children' in first ? first.children.map(shortNode) : first
}

/** All text of a document, with addresses and languages, in the order of the source. */
const textOf = (node: Nodes): string => {
  if (node.type === 'code') return `${node.lang ?? ''} ${node.meta ?? ''}\n${node.value}`
  if ('value' in node) return node.value
  if (node.type === 'image') return `${node.alt ?? ''}${node.url}${node.title ?? ''}`
  const text = 'children' in node ? node.children.map(textOf).join('') : ''
  return node.type === 'link' && (text === '' || !node.url.endsWith(text))
    ? `${text}${node.url}${node.title ?? ''}`
    : text
}
const wholeText = (source: string) => parseMarkdown(source)?.map(textOf).join('') ?? source
const letters = (text: string) => text.replace(/[^\p{L}]/gu, '')

describe('G10: Markdown in answers', () => {
  test('blocks: headings, lists, quotes, code, rules, paragraphs', () => {
    const source = [
      ...['# Title #', 'Some text', 'goes on', '---', '> quoted', '> - inside', ''],
      ...[
        '1. one',
        '   - nested',
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
    const paragraph = (...content: unknown[]) => ['paragraph', content]
    expect(blocks(source)).toEqual([
      ['heading', ['Title'], 1],
      paragraph('Some text\ngoes on'),
      ['thematicBreak'],
      ['blockquote', [paragraph('quoted'), ['list', [['listItem', [paragraph('inside')]]], null]]],
      [
        'list',
        [
          ['listItem', [paragraph('one'), ['list', [['listItem', [paragraph('nested')]]], null]]],
          ['listItem', [paragraph('two\nmore\nlazy')]],
        ],
        1,
      ],
      ['code', 'const a = `*b*`\n\n\tindented', 'ts'],
      ['heading', ['C#'], 2],
    ])
    expect(blocks('In the year\n2024. it began')).toEqual([paragraph('In the year\n2024. it began')])
  })

  test('tables, with alignment, escaped bars and rows of any length', () => {
    const row = (...cells: unknown[]) => ['tableRow', cells.map((cell) => ['tableCell', [cell]])]
    expect(blocks('| a | b |\n|:--|--:|\n| 1 \\| 2 | `x` | more |\n| one\n\nafter')).toEqual([
      ['table', [row('a', 'b'), row('1 | 2', ['inlineCode', 'x'], 'more'), row('one')], ['left', 'right']],
      ['paragraph', ['after']],
    ])
    expect(blocks('a | b\nno table')).toMatchObject([['paragraph', [expect.any(String)]]])
  })

  test('text that is still being written', () => {
    expect(blocks('```js\nlet a')).toEqual([['code', 'let a', 'js']])
    expect(blocks('| a | b |\n|--')).toMatchObject([['paragraph', [expect.any(String)]]])
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
      ['delete', ['f']],
      ' ',
      ['emphasis', [['strong', ['g']]]],
    ])
    expect(short('snake_case_name 2 * 3 * 4 \\*no\\* ``a ` b`` ~x~ ****')).toEqual([
      'snake_case_name 2 * 3 * 4 *no* ',
      ['inlineCode', 'a ` b'],
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
      ['link', [['image', 'alt', 'https://x.org/i.png']], 'https://x.org'],
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
      ...['/admin', 'java\tscript:alert(1)', 'https://', 'https://user:pass@x.org', 'blob:https://x.org/1'],
    ]) {
      expect(isSafeUrl(href), href).toBe(false)
      expect(JSON.stringify(short(`[a](${href}) ![b](${href}) <${href}>`)), href).not.toMatch(
        /"(?:link|image)",\[?"[ab]"/,
      )
    }
    for (const [href, webOnly] of [[' https://x'], ['mailto:a@b.c', true]] as const)
      expect(isSafeUrl(href, webOnly)).toBe(false)
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

  test('nesting is bounded, and hostile text is parsed in bounded time', () => {
    // Each piece that opens formatting, so often that the depth and the count of marks have to be bounded.
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
      const source = piece.repeat(Math.ceil(4_000 / piece.length))
      expect(letters(wholeText(source)).length, piece).toBe(letters(source).length)
    }
    const deep = Array.from({ length: 200 }, (_, level) => `${'  '.repeat(level)}- x`).join('\n')
    expect(depthOf(`${'> '.repeat(5_000)}x\n\n${deep}`)).toBeLessThan(30)
    expect(depthOf(`${'*a **b '.repeat(1_000)}c${'** *'.repeat(1_000)}`)).toBeLessThan(30)
  })
})

const depthOf = (source: string): number => Math.max(...(parseMarkdown(source) ?? []).map(nodeDepth))
const nodeDepth = (node: Nodes): number => ('children' in node ? 1 + Math.max(0, ...node.children.map(nodeDepth)) : 1)

test('E2: a page of the documentation may have links to other pages', () => {
  const source = 'see `a[0]` or [B](b.md), [not a link'
  const nodes = parseMarkdown(source, (url) => (url.endsWith('.md') ? `/${url}` : undefined))
  expect(nodes?.map(shortNode)).toEqual([
    ['paragraph', ['see ', ['inlineCode', 'a[0]'], ' or ', ['link', ['B'], '/b.md'], ', [not a link']],
  ])
  expect(short('[B](b.md)')).toEqual(['[B](b.md)'])
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../../tests/fixtures/cpu-time.ts'
import { readableText } from './readable.ts'

const base = new URL('https://example.com/folder/page.html')
const read = async (html: string) => (await readableText(html, base)).text

describe('readable text', () => {
  test.each([
    [
      'headings and paragraphs',
      '<h1>One</h1><p>Two  \n words<p>Three<h2>Four</h2>',
      '# One\n\nTwo words\n\nThree\n\n## Four',
    ],
    ['spaces between inline elements', '<p>a<b> b</b> <i>c </i>d<span>e</span></p>', 'a** b** *c* de'],
    ['lines', 'one<br>two<div>three</div>four', 'one  \ntwo\n\nthree\n\nfour'],
    ['links', '<a href="other?a=1&amp;b=2">Other</a>', '[Other](https://example.com/folder/other?a=1&b=2)'],
    [
      'links with blocks in them',
      '<a href="/x"><h3>Big</h3><p>text</p></a>',
      '[<h3>Big</h3>text](https://example.com/x)',
    ],
    ['links that cannot be fetched', '<a href="javascript:alert(1)">a</a> <a href="#top">b</a> <a>c</a>', 'a b c'],
    ['empty links', 'a <a href="/x"></a>b', 'a b'],
    ['a base', '<base href="/root/"><a href="x">x</a>', '[x](https://example.com/root/x)'],
    ['brackets in addresses', '<a href="/a(b)">x</a>', '[x](https://example.com/a%28b%29)'],
    ['lists', '<ul><li>a<li>b<ol><li>c</li><li>d</ol><li>e</ul>', '- a\n- b\n  1. c\n  2. d\n- e'],
    ['quotes', '<blockquote><p>a<p>b</blockquote>c', '> a\n>\n> b\n\nc'],
    ['quotes in text', 'a<blockquote>b<blockquote>c</blockquote></blockquote>d', 'a\n\n> b\n> > c\n\nd'],
    ['code', '<pre>  a\n    b &lt;c&gt;</pre>', '```\n  a\n    b <c>\n```'],
    ['tables', '<table><tr><th>A<th>B<tr><td>1<td><p>2</p><p>3</p></table>', '| A | B |\n| --- | --- |\n| 1 | 2 3 |'],
    ['images', '<img src=x alt="A cat"> <img src=y>', '[image: A cat]'],
    ['rules', 'a<hr>b', 'a\n\n---\n\nb'],
    [
      'entities',
      '&lt;b&gt; &amp;amp; &#65;&#x42; &hellip; &nope; &copy 5&nbsp;€',
      '\\<b> \\&amp; AB … &nope; © 5\u00a0€',
    ],
    ['impossible entities', '&#0;&#xd800;&#1114112;', '\ufffd\ufffd\ufffd'],
    ['comments', 'a<!-- <p>b</p> > -->c<!doctype html>d<?php e ?>f', 'a c d f'],
    ['signs that are no tags', '1 < 2 and 3 > 2, <3', '1 < 2 and 3 > 2, <3'],
    ['quoted brackets', '<p title="a > b">c</p>', 'c'],
    ['odd spelling', '<P\nCLASS=x\t>a</P >b<A HREF=/x>c</A>', 'a\n\nb [c](https://example.com/x)'],
  ])('S2: %s', async (_, html, text) => {
    expect(await read(html)).toBe(text)
  })

  test.each([
    ['programs', '<script>if (a < b) "</p>"</script>x<style>p { }</style>'],
    ['a script that looks closed', '<script>"</scrip"</scripty></script>x'],
    [
      'elements that are hidden',
      '<div hidden>evil <div>more</div></div><p style="color:red; display : none">evil</p>x',
    ],
    ['hidden by other means', '<b aria-hidden="TRUE">e</b><i style="font-size:0">e</i><u style="opacity:0">e</u>x'],
    ['hidden parts of a list', '<ul><li hidden>evil<li>x</ul>'],
    ['menus, forms and pictures', '<nav>menu</nav><select><option>a</select><button>b</button><svg><text>c</svg>x'],
    ['templates and frames', '<template><p>a</p></template><iframe>b</iframe><noscript><p>c</p></noscript>x'],
    ['the title', '<title>T</title>x'],
  ])('S2: %s are not read', async (_, html) => {
    expect((await read(html)).replace(/^- /, '')).toBe('x')
  })

  test('S2: the title is returned separately', async () => {
    expect(await readableText('<head><title>A &amp;\n B</title></head>text', base)).toEqual({
      title: 'A & B',
      text: 'text',
    })
  })

  test('security: a page cut off anywhere is still a page', async () => {
    const page = '<p class="a">Hello <!-- x --><a href="/y">link</a> &amp; <script>1</script> end</p>'
    for (let length = 0; length <= page.length; length++)
      expect(typeof (await read(page.slice(0, length)))).toBe('string')
  })

  test.each([
    ['tags that are never closed', '<div><a href=x>'],
    ['quotes that are never closed', '<a "'],
    ['comments that are never closed', '<!--'],
    ['scripts that are never closed', '<script>'],
    ['names without end', '<aaaaaaaa'],
    ['closing tags of nothing', '</p></div>'],
    ['brackets', '<'],
    ['list items in depth', '<ul><li>'],
    ['list items beside one another', '<li><span>'],
    ['cells', '<table><tr><td>'],
    ['links', '<a href=x>y</a>'],
    ['links in links', '<a href=x>y'],
    ['entities', '&#'],
    ['ampersands', '&a'],
    ['attributes', '<p a=b c="d" e'],
    ['spaces', '<p> \n\t</p> '],
    ['quotes', '<blockquote>\n'],
    ['lines', '<pre>\n\n'],
    ['bars', '|'],
  ])('security: 100 KB of %s take no longer than they should', async (_, part) => {
    const html = `${part.repeat(Math.ceil(100_000 / part.length))}x`
    // Linear work takes a tenth of it; quadratic work would take half a minute.
    await expectCpuBelow(1_250, () => read(html))
  })

  test('security: any text is a page, and nothing of a script or of a hidden element comes through', async () => {
    const junk = fc.array(
      fc.oneof(
        fc.constantFrom(
          '<p>',
          '</p>',
          '<a href="x">',
          '</a>',
          '<ul>',
          '<li>',
          '<td>',
          '<!--',
          '-->',
          '"',
          "'",
          '<',
          '>',
        ),
        fc.string({ maxLength: 5 }).map((text) => text.replaceAll('=', '')),
      ),
      { maxLength: 30 },
    )
    await fc.assert(
      fc.asyncProperty(junk, junk, async (before, inside) => {
        const inner = inside.join('').replaceAll('<', '').replaceAll('>', '')
        expect(typeof (await read([...before, ...inside].join('')))).toBe('string')
        expect(
          await read(`${inner}<script>SECRET${inner}</script><b hidden>SECRET<i>${inner}SECRET</i></b>`),
        ).not.toContain('SECRET')
      }),
    )
  })

  test('security: the text of nested links and tables is read once', async () => {
    const around = '<a href="/x"><table><tr><td>'
    const text = await read(`${around}one ${around}two</td></tr></table></a> three</td></tr></table></a>${around}four`)
    expect(text.match(/one|two|three|four/g)).toEqual(['one', 'two', 'three', 'four'])
  })

  test.each(['<code>`', '<hr><blockquote>', '```<code>', '<pre><blockquote>'])(
    'security: nested %s do not multiply the text',
    async (part) => {
      const html = part.repeat(100_000 / part.length)
      await expectCpuBelow(2_500, async () => expect((await read(html)).length).toBeLessThan(3 * html.length))
    },
  )

  test('S2: rows without a table, and code in quotes, are read', async () => {
    expect(await read('<tr><td>x</tr>')).toContain('x')
    expect(await read(`${'<blockquote>'.repeat(12)}<pre>x</pre>`)).toContain('x')
  })

  test('security: hidden text does not come through at any depth', async () => {
    const deep = '<div>'.repeat(600)
    expect(await read(`${deep}<p hidden>SECRET<b>SECRET</b></p>${deep}<script>SECRET</script>x`)).toBe('x')
  })

  test('B7: a large page is read in slices, and reading stops when it is cancelled', async () => {
    const page = '<p>text</p>'.repeat(20_000)
    let turns = 0
    const turn = () => {
      turns++
      if (turns < 1_000) setImmediate(turn)
    }
    setImmediate(turn)
    await read(page)
    expect(turns).toBeGreaterThan(50)
    const stop = new AbortController()
    const reading = readableText(page, base, stop.signal)
    stop.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })
})

test.each([
  ['empty cells', '<table><tr><th><th>B<tr><td>1<td></table>', '|  | B |\n| --- | --- |\n| 1 | |'],
  [
    'bars in cells',
    '<table><tr><td>a|b<td><a href="/x|y">c</a></table>',
    '| a\\|b | [c](https://example.com/x%7Cy) |\n| --- | --- |',
  ],
  [
    'tables in cells',
    '<table><tr><td>a<td><table><tr><td>b<td>c</table></table>',
    '| a | <table><tr><td>b</td><td>c</td></tr></table> |\n| --- | --- |',
  ],
  ['a caption', '<table><caption>T</caption><tr><td>a<td>b</table>', 'T\n\n| a | b |\n| --- | --- |'],
  ['a table in a quote', '<blockquote><table><tr><td>a<td>b</table></blockquote>', '> | a | b |\n> | --- | --- |'],
  ['text around a table', 'x<table><tr><td>a<td>b</table>y', 'x\n\n| a | b |\n| --- | --- |\n\ny'],
  ['rows of one cell', '<table><tr><td>a<tr><td>b</table>', '| a |\n| --- |\n| b |'],
])('S2: tables become Markdown tables, with %s', async (_, html, text) => {
  expect(await read(html)).toBe(text)
})

import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { parseObject } from '../parse-answer.ts'
import { maxRepairDepth } from './reader.ts'
import { repair } from './repair.ts'

describe('the reported repairs', () => {
  test.each([
    ['{"a": 1}', []],
    ['```json\n{"a": 1}\n```', ['removed a code fence']],
    ["<think>so</think>{'a': 1}", ['removed thinking', 'fixed quotes']],
    ['Here: {"a": 1}', ['removed surrounding text']],
    ['{a: True, // yes\n}', ['quoted keys', 'translated words', 'removed comments', 'fixed commas']],
    ['{"a": [1', ['closed a truncated value']],
    ['{\\"a\\": 1}', ['decoded it again']],
    ['{"a": 1} {"b": 2}', ['chose one of several values', 'removed surrounding text']],
  ])('S4: %j', (text, repairs) => {
    expect(repair(text)).toHaveProperty('repairs', repairs)
  })

  test.each([
    ['', 'is empty'],
    ['  \n', 'is empty'],
    ['I cannot help with that.', 'contains no JSON'],
    ['<think>Perhaps {"a": 1}? Let me see', 'contains an unclosed thinking block'],
    ['<think>{"a": 1} it is</think>', 'is empty'],
    ['Well, {"a": 1} might do.</think>', 'is empty'],
  ])('S4: %j is unreadable', (text, why) => {
    expect(repair(text)).toEqual({ unreadable: why })
  })

  test('S4: a scalar is found only if a scalar is accepted', () => {
    expect(repair('"yes"', { accepts: (value) => typeof value === 'string' })).toHaveProperty('value', 'yes')
    expect(repair('42')).toMatchObject({ value: 42, repairs: [] })
  })

  test('S4: of several values, the one with the expected shape is chosen', () => {
    const text = '{"much": "longer than the other one"} and {"a": 1} and {"also": "longer than that"}'
    const accepts = (value: unknown) => Object.hasOwn(value as object, 'a')
    expect(repair(text, { accepts })).toHaveProperty('value', { a: 1 })
  })
})

describe('unescaped quotes', () => {
  const read = (text: string) => parseObject(text, { accepts: () => true, ended: true })

  const lines = [
    'print("done")',
    'log("a"); log("b")',
    'select max("price") from "orders"',
    'grep "todo"; rm -rf out',
    'p::after{content:"*"}',
    'x = {"k": "v"}',
    'names["first"]',
    'd = {"a": 1, "b": 2}',
    '[link]("https://docs.example/a")',
    'y = ""',
  ]

  test.each(lines)('S4: %s is read exactly, wherever it is in the arguments', (line) => {
    expect(read(`{"code": "${line}", "n": 1}`)).toEqual({ value: { code: line, n: 1 } })
    expect(read(`{"n": 1, "code": "${line}"}`)).toEqual({ value: { n: 1, code: line } })
    expect(read(`{"in": {"code": "${line}"}, "n": "${line}"`)).toEqual({ value: { in: { code: line }, n: line } })
  })

  test.each([
    'add("-v", count="+")',
    'f(k="v", "w": "x")',
    'say "hi" # twice',
    'say " // twice',
    'a, "b": 1',
    'if "</end>" in line',
    'if "<|end|>{x}" in line',
    'text.split("</think>")',
    'text.split("```")',
    'pipe of 3" width',
    'parts = [f",{first}", "x"]',
  ])('S4: %s is never changed without notice', (line) => {
    for (const [text, value] of [
      [`{"code": "${line}", "n": 1}`, { code: line, n: 1 }],
      [`{"n": 1, "code": "${line}"}`, { n: 1, code: line }],
    ] as const) {
      const found = read(text)
      if ('value' in found) expect(found).toEqual({ value })
      else expect(found.problem).toMatch(/unclear|cut off|not a JSON object/)
    }
  })

  test.each([
    '{"a": "x""b": "y"}',
    '{"a": "x" y, "b": "z"}',
    '{"a": "x" + "y"}',
    '{"a": "x", "b"}',
    '{"a": {"b": "x" # note }, "c": 1 }',
    '{"a": "x"} y "z", "b": 1}',
    String.raw`{"a": "x"}[\"y\"] z"}`,
    String.raw`{"a": "say \"hi\"}`,
    `{"a": "f({\\"b\\": \\"c\\"});\n}`,
    '{"a": "x", "b" "y"}',
    '{"a": null"b": 1}',
    String.raw`{"a": [say \"no\", then \"yes\""]}`,
    '{"a": ["x", true"y"]}',
    '{"a": ["x""y"]}',
    '{"a": f(1) twice"}',
  ])('S4: %s is unclear', (text) => {
    expect(read(text)).toEqual({ problem: expect.stringContaining('unclear where its strings end') })
  })
})

describe('escapes', () => {
  const read = (text: string) => parseObject(text, { accepts: () => true, ended: true })

  test.each([
    [String.raw`{"a": one\ntwo", "b": 1}`, { a: 'one\ntwo', b: 1 }],
    [String.raw`{"a": say \"hi\"", "b": 1}`, { a: 'say "hi"', b: 1 }],
    [String.raw`{"a": "C:\Users\ada\run.exe \"x y\"", "b": 1}`, { a: String.raw`C:\Users\ada\run.exe "x y"`, b: 1 }],
    [String.raw`{"a": "C:\Users\ada\"}`, { a: 'C:\\Users\\ada\\' }],
    [`<think>so</think>${JSON.stringify('{"a": "“x”"}')}`, { a: '“x”' }],
    ['{"a": ["x",\n  true\n  "y"]}', { a: ['x', true, 'y'] }],
    [String.raw`{"a": ["say \"hi\"" "x"]}`, { a: ['say "hi"', 'x'] }],
  ])('S4: %s is read exactly', (text, value) => {
    expect(read(text)).toEqual({ value })
  })
})

describe('hostile text', () => {
  const { numRuns: length } = runs(8 * 1024, 16 * 1024)
  const long = (head: string, unit: string) => head + unit.repeat(Math.floor((length - head.length) / unit.length))
  const units =
    `"x|"|[|{|{"a":|\\|\\"|/*|//|#|'''|"""|{"a": "x, "b": |"a" |<think>|</think>|\`\`\`|{{|[{|}|]|...|a: |(|f(|{f(|\\u`
      .split('|')
      .concat([
        '\n"',
        '“',
        '“”',
        '1,',
        '-',
        '<|',
        '<!--',
        '{&quot;',
        '{\\"',
        '\u200b',
        '{"a":1}',
        '[a b] ',
        '"a"+',
        '"C:\\",',
      ])
  const heads = ['', '{"a":"', '{"a":', '["', 'so [']

  test.each(heads.flatMap((head) => units.map((unit) => [head, unit] as const)))(
    'security: %j and many %j end soon',
    (head, unit) => {
      // Time in proportion to the square of the length would be several times as much.
      return expectCpuBelow(length / 12, () => {
        const found = repair(long(head, unit))
        expect('value' in found || found.unreadable.length > 0).toBe(true)
      })
    },
  )

  test('security: nesting is limited for valid and broken JSON', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(repair(nested(maxRepairDepth))).toHaveProperty('complete', true)
    expect(repair(nested(maxRepairDepth + 2))).toHaveProperty('unreadable')
    expect(repair('['.repeat(5000))).toHaveProperty('unreadable')
    expect(repair(nested(20_000))).toHaveProperty('unreadable')
  })

  test('security: no prototype is touched', () => {
    const text =
      "{'__proto__': {'polluted': true}, 'constructor': {'prototype': {'polluted': true}}, a: {__proto__: null}}"
    const { value } = repair(text) as { value: Record<string, unknown> }
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor', 'a'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test('security: a long text is parsed strictly but not repaired', () => {
    const long = JSON.stringify({ a: 'x'.repeat(200_000) })
    expect(repair(long)).toMatchObject({ repairs: [], complete: true })
    expect(repair(`<think>so</think>\n\`\`\`json\n${long}\n\`\`\``)).toHaveProperty('repairs', [
      'removed thinking',
      'removed a code fence',
    ])
    expect(repair(`${long},`)).toEqual({ unreadable: expect.stringContaining('too long') })
  })
})

import { expect, test } from 'vitest'
import { anchorsOf, linksOf } from './anchors.ts'
import { isOutput, storiesOf } from './blocks.ts'
import { commandsIn, complaintOf } from './commands.ts'
import { loadShown } from './configuration.ts'

// The checks of the pages, checked themselves: one that finds nothing would be green for ever.

test('commands are found in scripts, behind what a shell has around them', () => {
  const script = [
    '# toolway in a comment',
    'umask 077; toolway keys create ci --agent "a b" > key   # keep it',
    'KEY=x npm run -s toolway -- call native.hash \\',
    '  data=1 && echo done | cat',
    'npx toolway servers',
    'npm start -- --config a.yaml',
    'export TOKEN="$(cat token)"',
    'echo toolway',
    'ExecStart=/opt/toolway/bin/node /opt/toolway/src/cli/main.ts serve --log info',
  ]
  expect(commandsIn(script.join('\n'))).toEqual([
    ['keys', 'create', 'ci', '--agent', 'a b'],
    ['call', 'native.hash', 'data=1'],
    ['servers'],
    ['serve', '--config', 'a.yaml'],
    ['serve', '--log', 'info'],
  ])
})

test.each([
  ['an option that there is not', 'audit query --sinse 7d', /unknown option '--sinse'/],
  ['a command that there is not', 'polcy replay', /unknown command 'polcy'/],
  ['a subcommand that there is not', 'audit qery', /unknown command 'qery'/],
  ['a value that is none', 'stats --by colour', /colour/],
  ['an argument that is missing', 'import', /missing required argument/],
])('%s is reported', async (_, line, complaint) => {
  expect(await complaintOf(line.split(' '))).toMatch(complaint)
})

test('prose may name a command without its arguments, but not an unknown one', async () => {
  expect(await complaintOf(['import'], { inProse: true })).toBeUndefined()
  expect(await complaintOf(['exprot'], { inProse: true })).toMatch(/unknown command/)
})

test('output is compared as a whole, but for what is left out', () => {
  expect(isOutput('a  b\n…\nend … of it\n', 'a b\nand\nso on\nend 12 ms of it\n')).toBe(true)
  expect(isOutput('a\n…\nb\n', 'a\nb\n')).toBe(true)
  expect(isOutput('a\n', 'a\nb\n')).toBe(false)
  expect(isOutput('a.c\n', 'abc\n')).toBe(false)
})

test('a page is parsed into stories of code blocks with their marks', () => {
  const page = '```sh test exit=4\nfalse\n```\n<!-- fresh folder -->\n```yaml a.yaml\nversion: 1\n```\n'
  expect(storiesOf(page)).toEqual([
    [{ line: 1, language: 'sh', marks: ['test', 'exit=4'], text: 'false\n' }],
    [{ line: 5, language: 'yaml', marks: ['a.yaml'], text: 'version: 1\n' }],
  ])
  expect(() => storiesOf('```sh\nnever closed')).toThrow('line 1')
})

test('a configuration with an unknown key does not load', async () => {
  await expect(loadShown('mcpServers: { a: { readOnly: true } }')).resolves.toMatchObject({ warnings: [] })
  await expect(loadShown('mcpServers: { a: { readonly: true } }')).rejects.toThrow(/did you mean `readOnly`/)
})

test('links and anchors are those of prose', () => {
  const page = '## A `b` heading, twice\n[x](y.md#z) [out](https://example.com)\n```\n# no heading [no](link)\n```\n'
  expect(linksOf(page)).toEqual(['y.md#z'])
  expect(anchorsOf(page)).toEqual(['a-b-heading-twice'])
})

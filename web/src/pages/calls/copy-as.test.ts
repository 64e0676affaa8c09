import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../../tests/fixtures/any-character.ts'
import { type CopiedCall, copyAs, shellQuote } from './copy-as.ts'

const call: CopiedCall = {
  ...{ operation: 'call_tool', server: 'files', name: 'read file', agent: 'dev', arguments: '{"path":"it\'s $HOME"}' },
  ...{ origin: 'http://127.0.0.1:4322', endpoint: 'http://127.0.0.1:4322/mcp' },
}

// By a variable, because the dashboard's types do not include those of Node.
const processes: string = 'node:child_process'
const { execFileSync } = (await import(processes)) as {
  execFileSync(program: string, args: readonly string[], options: { encoding: 'utf8' }): string
}

/** What a shell makes of words: each on its own, without interpretation. */
const read = (words: string): string[] =>
  execFileSync('sh', ['-c', `for word in ${words}; do printf '%s\\0' "$word"; done`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1)

test('V11: any text survives a shell', () => {
  const texts = fc.sample(fc.string({ unit: anyCharacter }), 300).map((text) => text.replaceAll('\0', ''))
  const all = ["it's", '$(date) `date` "x" \\ !', '', "'", '-n', '*', 'ä\n\r\tb', ...texts].map((text) =>
    text.toWellFormed(),
  )
  expect(read(all.map(shellQuote).join(' '))).toEqual(all)
})

test('V11: a call as curl and as a command passes its arguments unchanged', () => {
  const curl = copyAs('curl', call) as string
  expect(curl).toContain('/admin/api/tools/files.read%20file/call')
  const words = read(curl.replaceAll('\\\n', '').replace('$TOOLWAY_TOKEN', 'secret'))
  expect(words).toContain('Authorization: Bearer secret')
  expect(JSON.parse(words.at(-1) as string)).toEqual({ arguments: { path: "it's $HOME" }, agent: 'dev' })
  const command = read(copyAs('cli', call) as string)
  expect(command).toEqual(['toolway', 'call', 'files.read file', '--args', call.arguments, '--agent', 'dev'])
})

test('V11: code has the arguments as they were, and large numbers in curl keep their digits', () => {
  const code = copyAs('sdk', { ...call, arguments: '{"__proto__":{"a":1}}' }) as string
  expect(code).toContain('JSON.parse("{\\"__proto__\\":{\\"a\\":1}}")')
  expect(copyAs('sdk', call)).toContain(`callTool({ name: "files__read file", arguments: ${call.arguments} })`)
  expect(copyAs('curl', { ...call, arguments: '{"n":9007199254740993}' })).toContain('{"n":9007199254740993}')
})

test('V11: resources and prompts have no command, but curl and code', () => {
  const read = { ...call, operation: 'read_resource', name: 'file:///a' }
  expect(copyAs('cli', read)).toBeUndefined()
  expect(copyAs('curl', read)).toContain('"operation":"read_resource"')
  expect(copyAs('sdk', read)).toContain('readResource({ uri: "file:///a" })')
  expect(copyAs('sdk', { ...call, operation: 'complete' })).toBeUndefined()
})

import { expect, test } from 'vitest'
import { silentLog } from '../../core/log.ts'
import { ProcessOutput } from './stderr.ts'

const listening = (secrets: string[] = [], redact?: (text: string) => string) => {
  const logged: object[] = []
  let now = 0
  const clock = { now: () => 0, monotonic: () => now, after: () => ({ [Symbol.dispose]() {} }) }
  const log = { ...silentLog, debug: (facts: object) => void logged.push(facts) }
  const chatter = new ProcessOutput({ server: 'noisy', secrets, redact, clock, log })
  return {
    chatter,
    logged,
    write: (text: string) => chatter.line('stderr', Buffer.from(text)),
    advance: (ms: number) => (now += ms),
  }
}

const lastOf = (lines: readonly string[]): string => {
  const { chatter, write } = listening()
  for (const line of lines) write(line)
  return chatter.last
}

test('B6: configured values never reach the log or an error', () => {
  const { chatter, logged, write } = listening(['sk-12345678', 'sk-12345678-longer', 'yes'])
  write('yes: bad token sk-12345678-longer, tried sk-12345678')
  expect(chatter.last).toBe('yes: bad token [redacted], tried [redacted]')
  expect(JSON.stringify(logged)).not.toContain('12345678')
})

test('B6: a line is redacted before it is in an error or the log', () => {
  const encoded = Buffer.from('sk-12345678').toString('base64')
  const { chatter, logged, write } = listening(['sk-12345678'], (text) => text.replaceAll(encoded, '[hidden]'))
  write(`Authorization: Basic ${encoded}, sk-12345678`)
  expect(chatter.last).toBe('Authorization: Basic [hidden], [redacted]')
  expect(logged).toEqual([{ server: 'noisy', stream: 'stderr', line: chatter.last }])
})

test('B6: a secret does not survive the cut of a long line in part, nor between colours', () => {
  const { chatter, logged, write } = listening(['sk-12345678'])
  for (let before = 2_030; before < 2_050; before++) write(`${'.'.repeat(before)}sk-12345678${'.'.repeat(10_000)}`)
  for (let before = 285; before < 305; before++) write(`${'.'.repeat(before)}sk-12345678`)
  write(`${'\0'.repeat(4_090)}sk-12345678${'.'.repeat(10_000)}`)
  write('sk-\u001b[31m123\u001b[0m45678')
  expect(chatter.last).toBe('[redacted]')
  expect(logged).toHaveLength(42)
  expect(JSON.stringify(logged)).not.toMatch(/sk|1234|5678/)
})

test('security: control characters and colours are taken out, and long lines are cut', () => {
  const { chatter, write } = listening()
  write('\u001b[31mred\u001b[0m\u0007 alert\r\t!')
  expect(chatter.last).toBe('red alert !')
  write('say \u{e0041}\u202ehi\u200b')
  expect(chatter.last).toBe('say hi')
  write('x'.repeat(100_000))
  expect(chatter.last).toHaveLength(300)
  write('   ')
  expect(chatter.last).toHaveLength(300)
})

test.each([
  [
    "npm error 404 'x@*' could not be found",
    'npm error 404',
    'npm error 404 Note that you can also install from a',
    'npm error 404 tarball, folder, http url, or git url.',
    'npm error A complete log of this run can be found in: /home/me/.npm/_logs/now.log',
  ],
  [
    "Error: Cannot find module '/here/server.js'",
    '    at Module._load (node:internal/modules/cjs/loader:1225:37) {',
    "  code: 'MODULE_NOT_FOUND',",
    '  requireStack: []',
    '}',
    'Node.js v24.1.0',
  ],
  ["KeyError: 'ACME_API_KEY'", '  File "<frozen os>", line 679, in __getitem__'],
  ["AttributeError: 'Server' object has no attribute 'list_resources'"],
  ['cause: invalid peer certificate: UnknownIssuer', 'hint: Consider enabling use of system TLS certificates'],
])('B11: the last line is the one about the cause: %s', (cause, ...epilogue) => {
  const { chatter, logged, write } = listening()
  for (const line of [cause, ...epilogue]) write(line)
  expect(chatter.last).toBe(cause)
  expect(logged).toHaveLength(1 + epilogue.length)
})

test.each([
  ['Error: A database in memory needs --write.', 'Try one of these:', '- Use --file NAME', '- Use --write'],
  ['12:00:01 [error] no route to host', 'Goodbye'],
  ['2026-01-01 ERROR the token has expired', 'Docs: https://example.com/help'],
  ['Caused by: unknown issuer', 'See the manual'],
])('B11: a line that reports an error is preferred to later advice: %s', (cause, ...advice) => {
  const { chatter, write } = listening()
  for (const line of ['Error: an earlier one', 'starting, 0 errors', cause, ...advice]) write(line)
  expect(chatter.last).toBe(cause)
})

test('B11: help that follows an error does not hide it', () => {
  const options = Array.from({ length: 45 }, (_, index) => `  --option-${index}=VALUE  what it does`)
  expect(lastOf(['Error: No access token was provided.', '', 'Usage: server [options]', ...options])).toBe(
    'Error: No access token was provided.',
  )
  expect(lastOf(['usage: server [-h] folder', 'server: error: the argument folder is required'])).toBe(
    'server: error: the argument folder is required',
  )
})

test('B11: an error that was reported long before the end is not its cause', () => {
  const { chatter, write } = listening()
  for (const line of ['Error: retried', ...Array.from({ length: 20 }, (_, at) => `request ${at}`)]) write(line)
  expect(chatter.last).toBe('request 19')
})

test('security: what a flood writes is hardly looked at', { timeout: 30_000 }, () => {
  const { chatter } = listening()
  const line = Buffer.from(' \u001b[31m'.repeat(400))
  for (let count = 0; count < 100_000; count++) chatter.line('stderr', line)
  chatter.line('stderr', Buffer.from('the end'))
  expect(chatter.last).toBe('the end')
})

test('security: a flood does not flood the log, and its last line is still known', () => {
  const { chatter, logged, write, advance } = listening()
  for (let line = 0; line < 10_000; line++) write(`line ${line}`)
  expect(logged).toHaveLength(200)
  expect(chatter.last).toBe('line 9999')
  advance(1_000)
  write('after')
  expect(logged.slice(200)).toEqual([
    { server: 'noisy', lines: 9_800 },
    { server: 'noisy', stream: 'stderr', line: 'after' },
  ])
})

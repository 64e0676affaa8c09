import { expect, test } from 'vitest'
import { type ErrorCode, errorKinds, ServerError, ToolwayError } from '../core/errors.ts'
import { Json } from '../json/json.ts'
import { report } from './failure.ts'
import { recordedShell } from './kit.fixture.ts'
import { createOutput, exit, exitCodeHelp, exitCodeOf, relativeTo, UsageError } from './kit.ts'

const codes = Object.keys(errorKinds) as ErrorCode[]

test('B11, E2: every error code has an exit code that --help documents, and none of them means success', () => {
  for (const code of codes) {
    const exitCode = exitCodeOf(new ToolwayError(code, 'x'))
    expect(exitCode, code).not.toBe(exit.ok)
    expect(exitCodeHelp).toMatch(new RegExp(`^ +${exitCode} `, 'm'))
  }
})

test('B11: a script may repeat a call that ended with 3, because such a call was never sent', () => {
  const repeatable = codes.filter((code) => exitCodeOf(new ToolwayError(code, 'x')) === exit.unavailable)
  expect(repeatable).toEqual(['SERVER_UNAVAILABLE', 'SERVER_UNHEALTHY', 'CIRCUIT_OPEN', 'OVERLOADED'])
})

test('B11: usage errors exit with 2, unexpected ones with 1', () => {
  expect(exitCodeOf(new UsageError('x'))).toBe(exit.usage)
  expect(exitCodeOf(new TypeError('x'))).toBe(exit.failed)
  expect(exitCodeOf('x')).toBe(exit.failed)
})

test.each([
  ['files', true],
  [undefined, false],
])('E2: only an error about an MCP server (here %s) points to the list of servers', (server, pointsThere) => {
  const { shell, stderr } = recordedShell()
  const error = new ToolwayError('SERVER_UNAVAILABLE', 'It failed.', { server })
  report(error, createOutput(shell), { command: 'toolway', cwd: shell.cwd, debug: false })
  expect(stderr()).toContain('It failed.')
  expect(stderr().includes('`toolway servers`')).toBe(pointsThere)
})

test("T2, V5: with --json, a server's error is printed with all digits of its numbers", () => {
  const { shell, stdout } = recordedShell()
  const bytes = Buffer.from('{"code":-32050,"message":"Full.","data":{"id":12345678901234567890}}')
  const context = { command: 'toolway', cwd: shell.cwd, debug: false }
  report(new ServerError(Json.raw(bytes)), createOutput(shell, true), context)
  expect(stdout().replaceAll(/\s/g, '')).toBe(`{"error":${bytes}}`)
})

test.each([
  ['/etc/toolway.yaml: read as YAML', '/', '/etc/toolway.yaml: read as YAML'],
  ['/tmp/q/tmp/y.yaml', '/tmp', 'q/tmp/y.yaml'],
  ['/srv/tmp/y.yaml', '/tmp', '/srv/tmp/y.yaml'],
  ['"/tmp/a.yaml" overrides (/tmp/b.yaml)', '/tmp', '"a.yaml" overrides (b.yaml)'],
])('B11: %j is shown in the folder %s as %j', (text, cwd, shown) => {
  expect(relativeTo(text, cwd)).toBe(shown)
})

import { expect, test } from 'vitest'
import { limitWarnings } from './policy-warnings.ts'

const tools = [
  { server: 'files', name: 'read_file' },
  { server: 'files', name: 'write_file' },
]
const doubts = (limits: { servers?: Record<string, number>; tools?: Record<string, number> }) =>
  limitWarnings({ limits: { servers: {}, tools: {}, ...limits }, servers: ['files', 'web'], tools })

test('F8: a limit on a server that does not exist is a warning with a suggestion', () => {
  expect(
    doubts({ servers: { fils: 1, files: 1, toolway: 1, native: 1 }, tools: { 'wbe.get': 1, 'wbe.*': 1 } }),
  ).toEqual([
    'limits.servers.fils: there is no server fils; did you mean "files"?',
    'limits.tools.wbe.get: there is no server wbe; did you mean "web"?',
    'limits.tools.wbe.*: there is no server wbe; did you mean "web"?',
  ])
})

test('F8: a limit on a tool that does not exist is a warning, once the tools of its server are known', () => {
  expect(
    doubts({ tools: { 'files.readfiles': 1, 'files.read_file': 1, 'files.old_*': 1, '*': 1, 'web.any': 1 } }),
  ).toEqual(['limits.tools.files.readfiles: there is no tool files.readfiles; did you mean "files.read_file"?'])
})

test('F8: a limit that matches no call is a warning', () => {
  expect(doubts({ servers: { 'fi*': 1, '*': 1 }, tools: { read_file: 1 } })).toEqual([
    'limits.servers.fi*: only * alone is supported here; use limits.tools for patterns',
    'limits.tools.read_file has no effect; write it as server.tool',
  ])
})

test('a server with a dot in its name is recognised', () => {
  const limits = { servers: {}, tools: { 'a.b.c': 1 } }
  expect(limitWarnings({ limits, servers: ['a.b'] })).toEqual([])
})

test('F8: a limit for tools that looks like a regular expression is a warning', () => {
  expect(doubts({ tools: { 'files.read.*': 1, 'files.*': 1 } })).toEqual([
    'limits.tools.files.read.*: files.read.* matches only names with a dot there, because only * is a wildcard; did you mean files.read*?',
  ])
})

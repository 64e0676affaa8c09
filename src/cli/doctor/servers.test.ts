import { expect, test } from 'vitest'
import { findingOf } from './probed-server.fixture.ts'

const program = { command: process.execPath }
const works = {
  startMs: 12.3,
  handshakeMs: 310,
  listMs: 1500,
  era: 'legacy',
  protocolVersion: '2025-11-25',
  tools: ['read', 'write'],
  others: 0,
  missing: [],
} as const

test('B11: a working server is reported with its tools, era and times', async () => {
  expect(await findingOf(program, works)).toEqual({
    status: 'ok',
    message: '2 tools; 2025-11-25 (legacy) over stdio; start 12 ms, handshake 310 ms, lists 1.5 s',
  })
})

test('B11: a server with only SSE gets a hint to set its transport', async () => {
  const finding = await findingOf({ url: 'http://localhost/mcp' }, { ...works, transport: 'sse' })
  expect(finding).toMatchObject({ status: 'warning', remedy: 'mcpServers.it.transport: sse' })
  const named = await findingOf({ url: 'http://localhost/sse' }, { ...works, transport: 'sse' })
  expect(named.status).toBe('ok')
})

test('B11: other output, malformed definitions and empty lists are warnings', async () => {
  const noisy = await findingOf(program, { ...works, stdout: ['Listening on 8080'] })
  expect(noisy).toMatchObject({ status: 'warning', message: expect.stringContaining('("Listening on 8080")') })
  const odd = await findingOf(program, { ...works, remarks: ['dropped a malformed definition', 'another'] })
  expect(odd).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('dropped a malformed definition'),
    details: ['another'],
  })
  const empty = await findingOf(program, { ...works, tools: [] })
  expect(empty).toMatchObject({ status: 'warning', message: expect.stringContaining('offers no tools') })
  expect(await findingOf(program, { ...works, tools: [], others: 3 })).toMatchObject({ status: 'ok' })
})

test('B11: a server that fails to list its tools is a problem', async () => {
  const finding = await findingOf(program, { ...works, tools: [], missing: ['tools/list'] })
  expect(finding).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('failed to list its tools'),
  })
})

test('B11: stderr of a failed server is shown without stack traces', async () => {
  const stderr = [
    ...Array.from({ length: 20 }, (_, line) => `line ${line}`),
    'Error: boom',
    'at main (/srv/index.js:1:2)',
    'at node:internal/main/run_main_module:33:47',
  ]
  const { details } = await findingOf(program, { stderr, failure: { message: 'it ended (exit code 1).' } })
  expect(details).toHaveLength(8)
  expect(details?.at(-1)).toBe('Error: boom')
})

test('J2: a read-only server without known reads is a warning that names the settings', async () => {
  const blind = await findingOf({ ...program, readOnly: true }, { ...works, hintedReads: ['read'] })
  expect(blind).toMatchObject({ status: 'warning', remedy: 'mcpServers.it.trustAnnotations: true' })
  expect(blind.message).toMatch(/readTools.*trustAnnotations/)
  const unmarked = await findingOf({ ...program, readOnly: true }, works)
  expect(unmarked).toMatchObject({ status: 'warning', remedy: 'mcpServers.it.readTools: [read]' })
  for (const more of [{ readTools: ['re*'] }, { trustAnnotations: true }]) {
    const finding = await findingOf({ ...program, readOnly: true, ...more }, { ...works, hintedReads: ['read'] })
    expect(finding.status).toBe('ok')
  }
})

import { expect, test } from 'vitest'
import { silentLog } from '../../core/log.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { openRpcConnection } from '../connection/rpc-connection.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { fetchLists } from './fetch-lists.ts'

const signal = new AbortController().signal
const everything = { tools: {}, resources: {}, prompts: {} }
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
const empty = { 'resources/list': () => ({}), 'resources/templates/list': () => ({}), 'prompts/list': () => ({}) }

async function offer(answers: Parameters<typeof scriptedPeer>[0], capabilities: object = everything) {
  const warnings: object[] = []
  const log = { ...silentLog, warn: (facts: object) => warnings.push(facts) }
  const connection = await openRpcConnection(
    scriptedPeer(answers).transport,
    { server: 's', owned: false, log: silentLog },
    signal,
  )
  const handshake = { era: 'legacy', protocolVersion: '2025-11-25', serverInfo: {}, capabilities } as HandshakeResult
  const open = { connection, handshake, identity: { name: 'toolway', version: '1' } }
  const found = await fetchLists(open, { server: 's', capabilities: {}, log, signal })
  return { ...found, warnings }
}

test('B2: every page of a list is read', async () => {
  const pages: Record<string, object> = {
    start: { tools: [tool('a')], nextCursor: 'two' },
    two: { tools: [tool('b')], nextCursor: 'three' },
    three: { tools: [tool('c')] },
  }
  const { tools } = await offer({ ...empty, 'tools/list': ({ params }) => pages[String(params?.cursor ?? 'start')] })
  expect(tools.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

test('a server that repeats a cursor does not hold us for ever', async () => {
  const { tools } = await offer({ ...empty, 'tools/list': () => ({ tools: [tool('a')], nextCursor: 'again' }) })
  expect(tools.map(({ name }) => name)).toEqual(['a'])
})

test.each([
  ['pages', 1_000, () => [tool('a')]],
  ['entries', 13, () => Array.from({ length: 4_000 }, (_, index) => tool(`t${index}`))],
])('security: a list without end is cut after so many %s, and the log says so', async (_what, most, tools) => {
  let pages = 0
  const { warnings } = await offer(
    { 'tools/list': () => ({ tools: tools(), nextCursor: String(++pages) }) },
    { tools: {} },
  )
  expect(pages).toBe(most)
  expect(warnings[0]).toMatchObject({ method: 'tools/list', kept: expect.any(Number) })
})

test('security: a list full of wrong definitions does not fill the log', async () => {
  const { tools, warnings } = await offer(
    { 'tools/list': () => ({ tools: [...Array(10_000).keys(), tool('good')] }) },
    { tools: {} },
  )
  expect(tools.map(({ name }) => name)).toEqual(['good'])
  expect(warnings).toHaveLength(21)
  expect(warnings.at(-1)).toMatchObject({ dropped: 10_000 })
})

test('S1: a malformed tool is dropped and logged, its siblings stay', async () => {
  const odd = [
    tool('good'),
    { name: 5 },
    null,
    'text',
    { name: 'bare' },
    { name: 'list', inputSchema: [] },
    tool('good'),
  ]
  const { tools, warnings } = await offer({ ...empty, 'tools/list': () => ({ tools: [...odd, tool('other')] }) })
  expect(tools.map(({ name }) => name)).toEqual(['good', 'other'])
  expect(warnings).toHaveLength(6)
})

test('B2: unknown fields of a definition are kept', async () => {
  const rich = { ...tool('a'), icons: [{ src: 'x' }], future: { field: 1 }, _meta: { theirs: true } }
  const { tools } = await offer({ ...empty, 'tools/list': () => ({ tools: [rich] }) })
  expect(tools).toEqual([rich])
})

test('G2: a list that fails loses only itself, and is named', async () => {
  const { tools, prompts, failed, warnings } = await offer({
    ...empty,
    'tools/list': () => ({ tools: [tool('a')] }),
    'prompts/list': () => ({ error: { code: -32603, message: 'broken', data: { whatever: 'it holds' } } }),
    'resources/templates/list': () => ({ error: { code: -32601, message: 'what?' } }),
  })
  expect(tools).toHaveLength(1)
  expect(prompts).toEqual([])
  expect(failed).toEqual(['prompts/list'])
  expect(warnings).toEqual([{ server: 's', method: 'prompts/list', code: -32603, reason: 'broken' }])
})

test('only what the server says it has is asked for', async () => {
  const { tools } = await offer({ 'prompts/list': () => ({ prompts: [{ name: 'p' }] }) }, { prompts: {} })
  expect(tools).toEqual([])
})

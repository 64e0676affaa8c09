import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { caller, get } from './ask.ts'
import { startRecordingMcpServer } from './recording-server.ts'

test('J1: a sink, a server, a native tool and a meta-tool are called in one way, and nothing else is', async () => {
  await using recorder = await startRecordingMcpServer()
  await using toolway = await startToolway({
    mcpServers: { one: { url: recorder.url } },
    sinks: { notes: { kind: 'file', path: './notes' } },
  })
  const session = await rawSession(toolway)
  const call = (name: string, args: object) => session.answer('tools/call', { name, arguments: args })
  const [sink, server, native, meta, unknown] = await Promise.all([
    call('sink__notes', { content: 'to be kept' }),
    call('one__look', { key: 'a' }),
    call('native__hash', { data: 'abc' }),
    call('execute_tool', { server: 'one', tool: 'look', args: { key: 'b' } }),
    call('one__nothing', {}),
  ])
  expect(sink.result?.structuredContent).toMatchObject({ sink: 'notes', uri: expect.stringMatching(/^file:/) })
  expect(server.result?.content).toEqual([{ type: 'text', text: '1' }])
  expect(JSON.stringify(native.result)).toContain(createHash('sha256').update('abc').digest('hex'))
  expect(meta.result?.content).toEqual([{ type: 'text', text: '1' }])
  for (const { result } of [sink, server, native, meta]) expect(result?.isError).not.toBe(true)
  expect(unknown).toMatchObject({ error: { code: -32602, data: { code: 'TOOL_NOT_FOUND' } } })
})

const key = `twk_ci_${'a'.repeat(43)}`
const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`
const rules = { allow: { servers: ['*'] } }

test.each([
  { shown: 'nobody', settings: {}, expected: [false, false] },
  { shown: 'everybody, with defaults.debug', settings: { defaults: { debug: true } }, expected: [true, true] },
  {
    shown: 'one agent, with its own debug',
    settings: { agents: { ops: { ...rules, debug: true }, dev: rules } },
    expected: [true, false],
  },
])('G5: the status of the gateway is shown to $shown', async ({ settings, expected }) => {
  const auth = { keys: [{ id: 'ci', hash, agents: ['ops', 'dev'] }] }
  await using toolway = await startToolway({ agents: { ops: rules, dev: rules }, auth, ...settings })
  const told = async (agent: string) => {
    const text = await (await caller({ ...toolway, token: key }, agent))('get_gateway_status')
    if (text !== 'DENIED_BY_POLICY') {
      expect(JSON.parse(text)).toMatchObject({
        reload_status: { attempts: 0 },
        policy_state: { agents: ['ops', 'dev'] },
        servers: expect.any(Array),
        config_paths: [toolway.configFile],
      })
    }
    return text !== 'DENIED_BY_POLICY'
  }
  expect([await told('ops'), await told('dev')]).toEqual(expected)
})

test('F15: /metrics is there unless telemetry.metrics is false', async () => {
  for (const [metrics, status] of [
    [true, 200],
    [false, 404],
  ] as const) {
    await using toolway = await startToolway({ telemetry: { metrics } })
    expect((await get(toolway, '/metrics')).status).toBe(status)
  }
})

test('B6: a secret in the arguments of a server causes a warning at the start that does not contain it', async () => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'token'), 'not-to-be-told', { mode: 0o600 })
  const mcpServers = { one: { command: 'nothing', args: ['--quick', '${file:./token}'] } }
  await using toolway = await startToolway({ mcpServers }, { folder })
  const warnings = toolway.log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  expect(warnings).toEqual([expect.stringMatching(/^mcpServers\.one\.args\[1\]: .*mcpServers\.one\.env/)])
  expect(JSON.stringify(toolway.log.lines)).not.toContain('not-to-be-told')
})

test('F9, S2: fetch reaches this machine only where native.fetch.allowPrivate says so', async () => {
  await using recorder = await startRecordingMcpServer()
  for (const [allowPrivate, answer, arrived] of [
    [false, 'UNSAFE_URL', 0],
    [true, expect.stringContaining('405'), 1],
  ] as const) {
    await using toolway = await startToolway({ native: { fetch: { allowPrivate } } })
    expect(await (await caller(toolway))('native__fetch', { url: recorder.url })).toEqual(answer)
    expect(recorder.requests).toHaveLength(arrived)
  }
})

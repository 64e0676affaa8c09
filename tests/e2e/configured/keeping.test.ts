import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createManualClock } from '../../fixtures/clock.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { startProvider } from '../../fixtures/identity-provider.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { caller } from './ask.ts'
import { startRecordingMcpServer } from './recording-server.ts'

test.each([
  { room: 'all of them', settings: {}, third: '1' },
  { room: 'cache.maxEntries of them', settings: { maxEntries: 1 }, third: '2' },
  { room: 'cache.maxBytes of them', settings: { maxBytes: '1KiB' }, third: '2' },
])('F13: results are cached up to the limits: $room', async ({ settings, third }) => {
  await using recorder = await startRecordingMcpServer()
  const cache = { enabled: true, tools: ['one.look'], ...settings }
  await using toolway = await startToolway({ mcpServers: { one: { url: recorder.url } }, cache })
  const call = await caller(toolway)
  const look = (key: string) => call('one__look', { key })
  expect([await look('a'), await look('a')]).toEqual(['1', '1'])
  expect(await look('b')).toBe('1')
  expect(await look('a')).toBe(third)
})

test('G8, F13: a changed cache section forgets what was kept, another change does not', async () => {
  await using recorder = await startRecordingMcpServer()
  const config = (ttl: string, perMinute: number) => ({
    mcpServers: { one: { url: recorder.url } },
    cache: { enabled: true, tools: ['one.look'], ttl },
    limits: { perMinute },
  })
  await using toolway = await startToolway(config('1h', 1000))
  const call = await caller(toolway)
  const after = async (changed: ReturnType<typeof config>) => {
    await toolway.rewrite(changed)
    await toolway.gateway.reload()
    return call('one__look')
  }
  expect(await call('one__look')).toBe('1')
  expect(await after(config('1h', 2000))).toBe('1')
  expect(await after(config('2h', 2000))).toBe('2')
})

test.each([
  { per: 'agent', second: 'RATE_LIMITED' },
  { per: 'client', second: '2' },
])(
  'W12: with limits.per: $per, a second client of an agent gets $second when the first has used up the limit',
  async ({ per, second }) => {
    await using recorder = await startRecordingMcpServer()
    await using provider = await startProvider()
    const mcpServers = { one: { url: recorder.url } }
    const auth = { jwt: provider.config() }
    await using toolway = await startToolway({ mcpServers, auth, limits: { per, servers: { one: 1 } } })
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map(async (sub) => caller({ ...toolway, token: await provider.token({ sub }) })),
    )
    const look = (call = ann) => call?.('one__look')
    expect([await look(), await look()]).toEqual(['1', 'RATE_LIMITED'])
    expect(await look(bob)).toBe(second)
    const { considered } = await toolway.gateway.why('default', 'one__look')
    expect(considered.at(-1)?.note.includes('each client')).toBe(per === 'client')
  },
)

test.each([
  { retry: { backoff: '1ms' }, tries: 3 },
  { retry: { backoff: '1ms', attempts: 1 }, tries: 2 },
  { retry: { backoff: '1ms', budget: 0 }, tries: 1 },
  // A random part of this is longer than the call has.
  { retry: { backoff: '24d' }, tries: 1 },
])('F12: with retry $retry a read that fails is tried $tries times', async ({ retry, tries }) => {
  await using recorder = await startRecordingMcpServer()
  const one = { url: recorder.url, readTools: ['drop'] }
  await using toolway = await startToolway({ mcpServers: { one }, retry, breaker: { failures: 100 } })
  expect(await (await caller(toolway))('one__drop')).toBe('OUTCOME_UNKNOWN')
  expect(recorder.got('tools/call')).toHaveLength(tries)
})

const dayMs = 24 * 60 * 60 * 1000

/** Starts and stops a gateway on some day; gives back the files of its audit log. */
async function runOn(day: number, folder: Folder, retain: string): Promise<string[]> {
  const file = await writeConfig(folder.path, { audit: { retain } }, 'nobody')
  const loaded = await loadConfig({ paths: [file], env: process.env, cwd: folder.path })
  const clock = createManualClock(Date.UTC(2027, 0, 1) + day * dayMs)
  {
    await using _gateway = await openGateway(loaded, { log: createKeptLog(), clock })
  }
  return globSync(join(folder.path, 'state/audit/*/*.jsonl')).sort()
}

test('F11: audit records are kept as long as audit.retain says', async () => {
  await using folder = await temporaryFolder()
  const [first] = await runOn(0, folder, '30d')
  expect(first).toBeDefined()
  // Every day: only time counts that the log has seen.
  for (let day = 1; day < 20; day++) await runOn(day, folder, '30d')
  expect(await runOn(20, folder, '30d')).toContain(first)
  expect(await runOn(21, folder, '10d')).not.toContain(first)
})

import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type * as z from 'zod'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { type LocalToolway, startToolway } from '../../tests/fixtures/toolway.ts'
import { adminRoutes, type RouteParts } from '../admin/routes.ts'

const config = {
  history: {},
  native: { tools: ['hash'] },
  mcpServers: { resting: { command: 'no-such-program', disabled: true } },
  defaults: { agent: 'all' },
  agents: {
    all: { allow: { servers: ['*'] } },
    none: { deny: { servers: ['*'] } },
  },
}

let toolway: LocalToolway
beforeAll(async () => {
  toolway = await startToolway(config)
})
afterAll(() => toolway[Symbol.asyncDispose]())

async function ask(path: string, body?: object, { url, token }: Pick<LocalToolway, 'url' | 'token'> = toolway) {
  const { origin } = new URL(url)
  const headers = { authorization: `Bearer ${token}`, origin, 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${origin}/admin/api/${path}`, { headers, ...init })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

test('G10: every view of a gateway in this process fits its schema', async () => {
  const called = await ask('tools/native__hash/call', { arguments: { data: 'x' } })
  expect(called).toMatchObject({ status: 200, json: { call: expect.any(String) } })
  const targets: Record<string, unknown> = { servers: 'resting', tools: 'native__hash', calls: called.json.call }
  // No server of this gateway has a definition to pin or a skill, and no registry is configured.
  const without = ['openapi.json', 'pins/{label}', 'skills/{name}', 'config/registry']
  const queries: Record<string, string> = { search: '?q=hash', stats: '?by=tool', why: '?agent=none&tool=native.hash' }
  for (const { method, stream, path, answer } of adminRoutes({} as RouteParts)) {
    if (method !== 'GET' || stream || without.includes(path)) continue
    const concrete = path.replace(/\{\w+\}/, String(targets[path.split('/')[0] as string]))
    const { status, json } = await ask(concrete + (queries[path] ?? ''))
    expect([path, status, (answer as z.ZodType).safeParse(json).error?.message]).toEqual([path, 200, undefined])
  }
})

test('G8: a reload replaces the generation, and an invalid configuration changes nothing', async () => {
  const { gateway } = toolway
  await toolway.rewrite({ ...config, agents: { ...config.agents, third: { allow: { servers: ['*'] } } } })
  expect(await gateway.reload()).toMatchObject({ attempts: 1, successes: 1 })
  expect(Object.keys(gateway.loaded.config.agents)).toContain('third')
  await toolway.rewrite({ ...config, agents: { third: { allow: 7 } } } as never)
  expect((await gateway.reload()).last_error).toContain('allow')
  expect(Object.keys(gateway.loaded.config.agents)).toContain('third')
})

test('G8: a file that was just reloaded on request is not reloaded again because it has changed', async () => {
  const clock = createManualClock()
  await using watching = await startToolway(config, { watch: true, clock })
  const { gateway } = watching
  await watching.rewrite({ ...config, native: { tools: ['uuid'] } })
  await gateway.reload()
  clock.advance(5_000)
  expect(gateway.reloadStatus().attempts).toBe(1)
  await watching.rewrite(config)
  clock.advance(5_000)
  expect(gateway.reloadStatus().attempts).toBe(2)
})

test('F7: why decides for an agent and a tool, and rejects a tool that does not exist', async () => {
  const { gateway } = toolway
  expect(await gateway.why('all', 'native.hash')).toMatchObject({ decision: { allowed: true } })
  expect(await gateway.why('none', 'native.hash')).toMatchObject({ decision: { allowed: false } })
  await expect(gateway.why('all', 'native.hahs')).rejects.toThrow('native.hahs')
  await gateway.refresh()
  expect(gateway.servers().map(({ name }) => name)).toContain('resting')
})

test('B11, G6: with policy.hideDenied, operators see every tool and why it is denied, and others do not', async () => {
  const token = `twk_${'n'.repeat(40)}`
  const hash = `sha256:${createHash('sha256').update(token).digest('hex')}`
  const auth = { keys: [{ id: 'guest', agents: ['none', 'all'], hash }] }
  await using hiding = await startToolway({ ...config, defaults: {}, policy: { hideDenied: true }, auth })
  const denied = { allowed: false, rule: 'agents.none.deny.servers[0]' }
  expect(await hiding.gateway.why('none', 'native.hash')).toMatchObject({ decision: denied })
  const path = 'why?agent=none&tool=native.hash'
  expect(await ask(path, undefined, hiding)).toMatchObject({ status: 200, json: denied })
  expect(await ask('tools/native__hash', undefined, hiding)).toMatchObject({ status: 200 })
  const asGuest = { ...hiding, token }
  const missing = await ask('why?agent=none&tool=nowhere.hash', undefined, asGuest)
  const hidden = await ask(path, undefined, asGuest)
  expect(missing).toMatchObject({ status: 404 })
  expect(JSON.stringify(hidden).replaceAll('native', 'nowhere')).toBe(JSON.stringify(missing))
  const allowed = await ask('why?agent=all&tool=hash', undefined, asGuest)
  expect(allowed).toMatchObject({ status: 200, json: { server: 'native', allowed: true } })
})

test('B6: a secret in the URL of a server is neither kept with its pins nor logged when the URL changes', async () => {
  await using folder = await temporaryFolder()
  const written = join(folder.path, 'written')
  const secrets = ['correct-horse', 'battery-staple', 'Zk3vQ9xLm2Rt7Wp5']
  const at = (path: string) => ({ mcpServers: { web: { url: `http://127.0.0.1:1/${path}/mcp`, disabled: true } } })
  await writeFile(written, secrets[0] as string, { mode: 0o600 })
  await using moving = await startToolway(at(`\${file:${written}}`), { folder })
  await writeFile(written, secrets[1] as string)
  await moving.gateway.reload()
  await moving.rewrite(at(secrets[2] as string))
  await moving.gateway.reload()
  await moving.gateway[Symbol.asyncDispose]()
  const text = 'http://127.0.0.1:1/[redacted]/mcp'
  const moves = moving.log.lines.filter(({ message }) => message.includes('new origin'))
  expect(moves.map(({ facts }) => facts)).toEqual(Array(2).fill({ server: 'web', from: text, to: text }))
  const pins = join(moving.gateway.loaded.config.stores.path, 'pins')
  const files = await readdir(pins)
  expect(files).not.toEqual([])
  for (const file of files) {
    const kept = await readFile(join(pins, file), 'utf8')
    for (const secret of secrets) expect(kept).not.toContain(secret)
  }
})

test('B6: a secret that a reload has replaced is still redacted', async () => {
  const withSecret = (apiKey: string) => ({
    native: { tools: ['hash'] },
    models: { m: { kind: 'openai', baseUrl: 'http://127.0.0.1:1/v1', model: 'm', apiKey } },
  })
  const old = 'correct-horse-battery-9'
  await using rotating = await startToolway(withSecret(old))
  for (const next of ['other-donkey-staple-8', 'third-zebra-magnet-7']) {
    await rotating.rewrite(withSecret(next))
    await rotating.gateway.reload()
  }
  await ask(`tools/native__${old}/call`, { arguments: {} }, rotating)
  await rotating.gateway[Symbol.asyncDispose]()
  const lane = join(rotating.gateway.loaded.config.audit.path, '1')
  const segments = (await readdir(lane)).filter((name) => name.endsWith('.jsonl'))
  const written = await Promise.all(segments.map((name) => readFile(join(lane, name), 'utf8')))
  expect(written.join('')).toContain('[redacted]')
  expect(written.join('')).not.toContain(old)
})

test('B6: the error of a plugin that cannot be loaded does not show secrets', async () => {
  await using folder = await temporaryFolder()
  const plugin = join(folder.path, 'plugin.mjs')
  await writeFile(plugin, "throw new Error('no answer for correct-horse-battery-9')", { mode: 0o600 })
  const starting = startToolway({ auth: { token: 'correct-horse-battery-9' }, native: { plugins: [plugin] } })
  await expect(starting).rejects.toThrow('no answer for [redacted].')
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import type * as z from 'zod'
import { type LocalToolway, startToolway } from '../../tests/fixtures/toolway.ts'
import { routes } from '../serve/admin/routes/index.ts'

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

async function ask(path: string, body?: object) {
  const { origin } = new URL(toolway.url)
  const headers = { authorization: `Bearer ${toolway.token}`, origin, 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${origin}/admin/api/${path}`, { headers, ...init })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

test('G10: every view of a gateway in this process fits its schema', async () => {
  const called = await ask('tools/native__hash/call', { arguments: { data: 'x' } })
  expect(called).toMatchObject({ status: 200, json: { call: expect.any(String) } })
  const targets: Record<string, unknown> = { servers: 'resting', tools: 'native__hash', calls: called.json.call }
  // No server of this gateway has a definition to pin, and no registry is configured.
  const without = ['openapi.json', 'pins/{label}', 'config/registry']
  const queries: Record<string, string> = { search: '?q=hash', stats: '?by=tool', why: '?agent=none&tool=native.hash' }
  for (const { method, stream, path, answer } of routes) {
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

test('F7: why decides for an agent and a tool, and rejects a tool that does not exist', async () => {
  const { gateway } = toolway
  expect(await gateway.why('all', 'native.hash')).toMatchObject({ decision: { allowed: true } })
  expect(await gateway.why('none', 'native.hash')).toMatchObject({ decision: { allowed: false } })
  await expect(gateway.why('all', 'native.hahs')).rejects.toThrow('native.hahs')
  await gateway.refresh()
  expect(gateway.servers().map(({ name }) => name)).toContain('resting')
})

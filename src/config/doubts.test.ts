import { expect, test } from 'vitest'
import { project } from './project.fixture.ts'

const warningsOf = async (text: string) => (await (await project({ 'toolway.yaml': text })).load()).warnings

test('names that lead nowhere are warnings', async () => {
  expect(await warningsOf('agents: { a: {} }\ndefaults: { agent: b }\nchat: { model: m }')).toEqual([
    'chat.model: there is no model m',
  ])
})

test('keys without effect on a kind of server are warnings', async () => {
  const text =
    'mcpServers: { a: { command: x, headers: { A: b } }, b: { url: "http://x", env: { A: b }, args: [], cwd: . } }'
  expect(await warningsOf(text)).toEqual([
    'mcpServers.a.headers has no effect on a program that is started',
    'mcpServers.b.env has no effect on a server with a url',
    'mcpServers.b.cwd has no effect on a server with a url',
  ])
})

test('B10: a sign-in that not all replicas share is a doubt, and so is a key that seals nothing', async () => {
  const servers = 'mcpServers: { a: { url: "https://x", auth: { type: oauth } }, b: { url: "http://y" } }'
  const key = `key: ${'k'.repeat(32)}`
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x" } }`)).toEqual([
    'stores.redis is set without stores.key: to a each replica signs in for itself, unless they share a key',
  ])
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x" }, ${key} }`)).toEqual([])
  expect(await warningsOf(`${servers}\nstores: { redis: { url: "redis://x", disabled: true } }`)).toEqual([])
  expect(await warningsOf(`stores: { ${key} }`)).toEqual(['stores.key has no effect without stores.redis'])
})

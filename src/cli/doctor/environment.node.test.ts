import { expect, test } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { nodeCheck, nodeFinding, openFilesCheck } from './environment.ts'

test.each([
  ['24.0.0', '>=24', 'ok'],
  ['25.1.2', '>=24', 'ok'],
  ['24.2.0', '>=24.2.0', 'ok'],
  ['24.10.0', '>=24.9', 'ok'],
  ['24.1.9', '>=24.2.0', 'problem'],
  ['22.21.0', '>=24', 'problem'],
])('B11: Node %s where %s is needed: %s', (running, wanted, status) => {
  expect(nodeFinding(running, wanted).status).toBe(status)
})

test('B11: an old Node version is reported with a remedy; the current one is accepted', async () => {
  expect(nodeFinding('22.21.0', '>=24')).toMatchObject({ remedy: 'nvm install 24' })
  expect(await nodeCheck.run(new AbortController().signal)).toMatchObject({
    status: 'ok',
    message: expect.stringContaining(process.versions.node),
  })
})

test.each([
  [1_024, 120, 'ok'],
  [256, 120, 'problem'],
  [256, 20, 'ok'],
])('B11: with at most %i open files, %i local servers are %s', async (limit, count, status) => {
  const servers = Array.from({ length: count }, (_, index) => [`s${index}`, { command: 'x' }])
  const others = { remote: { url: 'https://x.example/mcp' }, off: { command: 'x', disabled: true } }
  const { mcpServers } = configSchema.parse({ mcpServers: { ...Object.fromEntries(servers), ...others } })
  const { signal } = new AbortController()
  expect(await openFilesCheck(mcpServers, () => limit).run(signal)).toMatchObject({
    status,
    message: expect.stringContaining(`${limit}; ${count} local servers`),
  })
  expect(await openFilesCheck(mcpServers, () => undefined).run(signal)).toEqual([])
})

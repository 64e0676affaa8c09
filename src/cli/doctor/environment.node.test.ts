import { expect, test } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { checkup, configured } from './checkup.fixture.ts'
import { openFilesFindings } from './environment.ts'

test('B11: the version of Node is reported', async () => {
  await using at = await configured()
  expect((await checkup(at)).of('node')).toMatchObject([
    { status: 'ok', message: expect.stringContaining(process.versions.node) },
  ])
})

test.each([
  [1_024, 120, 'ok'],
  [256, 120, 'problem'],
  [256, 20, 'ok'],
])('B11: with at most %i open files, %i local servers are %s', async (limit, count, status) => {
  const servers = Array.from({ length: count }, (_, index) => [`s${index}`, { command: 'x' }])
  const others = { remote: { url: 'https://x.example/mcp' }, off: { command: 'x', disabled: true } }
  const { mcpServers } = configSchema.parse({ mcpServers: { ...Object.fromEntries(servers), ...others } })
  expect(openFilesFindings(mcpServers, () => limit)).toMatchObject({
    status,
    message: expect.stringContaining(`${limit}; ${count} local servers`),
  })
  expect(openFilesFindings(mcpServers, () => undefined)).toEqual([])
})

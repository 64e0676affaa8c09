import { expect, test } from 'vitest'
import { stdioServers } from '../../../tests/fixtures/servers.ts'
import { checkup, configured } from './checkup.fixture.ts'

const probe = stdioServers.probe()
const off = { command: 'no-such-command' }

test('B11: an agent that may use no available tool is reported', async () => {
  const agents = {
    some: { allow: { tools: { probe: ['echo'] } } },
    misspelt: { allow: { tools: { probe: ['ecco'] } } },
    nobody: { deny: { servers: ['*'] } },
  }
  await using at = await configured({ mcpServers: { probe }, agents })
  expect((await checkup(at)).of('agents')).toMatchObject([
    {
      status: 'warning',
      message: 'misspelt may not use any of the available tools',
      remedy: expect.stringMatching(/^toolway why misspelt probe\./),
    },
  ])
})

test('B11: agents are not reported if the tools of a server are unknown', async () => {
  await using at = await configured({ mcpServers: { off }, agents: { dev: { allow: { tools: { off: ['x'] } } } } })
  expect((await checkup(at)).of('agents')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('1 agent') },
  ])
})

test('B11: without rules every caller may use every tool', async () => {
  await using at = await configured()
  expect((await checkup(at)).of('agents')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('no rules') },
  ])
})

test('B11: tools that the configuration excludes do not count', async () => {
  const mcpServers = { probe: { ...probe, tools: { exclude: ['echo'] } } }
  await using at = await configured({ mcpServers, agents: { dev: { allow: { tools: { probe: ['echo'] } } } } })
  expect((await checkup(at)).of('agents')).toMatchObject([{ status: 'warning' }])
})

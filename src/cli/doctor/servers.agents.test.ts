import { expect, test } from 'vitest'
import { stdioServers } from '../../../tests/fixtures/servers.ts'
import { checkup, configured } from './checkup.fixture.ts'

const probe = stdioServers.probe()
const off = { command: 'no-such-command' }

test('B11: an agent whose rules fit no tool that there is, is told', async () => {
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

test('B11: where a server did not tell, nobody is suspected', async () => {
  await using at = await configured({ mcpServers: { off }, agents: { dev: { allow: { tools: { off: ['x'] } } } } })
  expect((await checkup(at)).of('agents')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('1 agent') },
  ])
})

test('B11: without rules everybody may use everything', async () => {
  await using at = await configured()
  expect((await checkup(at)).of('agents')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('no rules') },
  ])
})

test('B11: tools that the configuration leaves out count for nobody', async () => {
  const mcpServers = { probe: { ...probe, tools: { exclude: ['echo'] } } }
  await using at = await configured({ mcpServers, agents: { dev: { allow: { tools: { probe: ['echo'] } } } } })
  expect((await checkup(at)).of('agents')).toMatchObject([{ status: 'warning' }])
})

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { connectCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { asking, originOf } from '../admin/people.ts'
import { endedIn } from '../audit/records.ts'

test('F11, G7: audit, stats and replay are about the agent that agent_id names, in every call of a meta-tool', async () => {
  await using folder = await temporaryFolder()
  const agents = { researcher: { allow: { servers: ['native'] } } }
  {
    await using toolway = await startToolway({ agents }, { folder })
    await using caller = await connectCaller('v2', toolway)
    const hash = { server: 'native', tool: 'hash', args: { data: 'x' } }
    expect(await caller.call('execute_tool', { agent_id: 'researcher', ...hash })).not.toHaveProperty('isError', true)
    expect(await caller.call('list_servers', { agent_id: 'researcher' })).not.toHaveProperty('isError', true)
    const { json } = await asking(originOf(toolway), toolway.token)('stats?by=agent')
    expect.soft(json.rows.map(({ name }: { name: string }) => name)).toEqual(['researcher'])
  }
  const calls = [
    ['researcher', 'execute_tool'],
    ['researcher', 'hash'],
    ['researcher', 'list_servers'],
  ]
  const recorded = endedIn(folder.path).map(({ agent, tool }) => [agent, tool])
  expect.soft(recorded.sort()).toEqual(calls)
  const proposed = { agents: { researcher: {} }, policy: { blockedTools: ['toolway.*'] } }
  await writeFile(join(folder.path, 'new.json'), JSON.stringify(proposed))
  const words = ['policy', 'replay', '--config', 'toolway.json', '--policy', 'new.json', '--json']
  const { denied } = JSON.parse((await command(words, { cwd: folder.path })).stdout)
  const changes = denied.map(({ agent, tool }: Record<string, string>) => [agent, tool])
  expect.soft(changes.sort()).toEqual(calls)
})

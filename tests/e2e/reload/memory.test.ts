import { expect, test } from 'vitest'
import { settledHeap } from '../../fixtures/memory.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

test('G8: generations that have ended leave nothing in memory, however many there were', async () => {
  const mcpServers = { many: stdioServers.manyTools('many', 500, 500) }
  await using toolway = await startToolway({ history: {}, mcpServers })
  const { gateway } = toolway
  await gateway.refresh()
  const reload = async (from: number, to: number, enough?: number) => {
    for (let count = from; count < to; count++) {
      await toolway.rewrite({ mcpServers, policy: { blockedTools: [`many.tool_${count}`] } })
      await gateway.reload()
      gateway.view(gateway.local).page('tool')
    }
    await until(() => gateway.generations() === 1, { what: 'old generations to end' })
    return settledHeap(enough)
  }
  const before = await reload(0, 5)
  // A generation with 500 tools takes more than a megabyte.
  const allowed = 5 * 1024 * 1024
  expect((await reload(5, 15, before + allowed)) - before).toBeLessThan(allowed)
})

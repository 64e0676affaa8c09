import { expect } from 'vitest'
import { callOf } from '../../../src/core/call.fixture.ts'
import { ToolwayError } from '../../../src/core/errors.ts'
import { Json } from '../../../src/json/json.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

const servers = ['alpha', 'beta', 'gamma', 'delta', 'epsilon']
const input = { arguments: Json.of({ message: 'x' }), meta: {} }

/** Fifty agents of three generations: closed, open, narrowed, by name and by pattern. */
const agents = Object.fromEntries(
  Array.from({ length: 50 }, (_, number) => {
    const team = `team${number % 5}`
    const name =
      number < 5 ? team : number < 20 ? `${team}.role${number}` : `${team}.role${(number % 15) + 5}.p${number}`
    const own = servers[number % 5] as string
    const other = servers[(number * 3 + 1) % 5] as string
    const allow = [
      { servers: ['*'] },
      { servers: [own, `${other.slice(0, 2)}*`] },
      { servers: [own], tools: { [other]: ['tool_1*', '*_7', `tool_${number}`] } },
      {},
    ][number % 4]
    const deny = [{}, { tools: { '*': [`*${number % 10}`] } }, { servers: [other] }, { tools: { [own]: ['tool_2*'] } }][
      (number + 1) % 4
    ]
    return [name, { allow, deny }]
  }),
)

/** What `why` says and what really happens agree for every pair of so many of the fifty agents and 500 tools. */
export async function whyAgrees(many: number): Promise<void> {
  const mcpServers = Object.fromEntries(
    servers.map((name, index) => [
      name,
      {
        ...stdioServers.manyTools(name, 100, 100),
        ...(index === 4 && { readOnly: true, readTools: ['tool_?', '*_1*'] }),
      },
    ]),
  )
  await using toolway = await startToolway({
    mcpServers,
    agents,
    limits: { queue: 1000 },
    policy: { blockedTools: ['beta.*9', 'gamma.tool_42'], allowedServers: ['alpha', 'beta', 'gamma', 'd*', 'epsilon'] },
  })
  const { gateway } = toolway
  await gateway.refresh()
  const tools = gateway.view(gateway.localAs(Object.keys(agents)[0])).list('tool')
  expect(tools.length).toBeGreaterThan(0)
  const counts = { allowed: 0, denied: 0 }
  // Scattered over all kinds: which kind an agent is goes by its number.
  const asked = Object.keys(agents).filter((_, number) => (number * 7) % 50 < many)
  for (const agent of asked) {
    const caller = gateway.localAs(agent)
    const view = gateway.view(caller)
    const listed = new Set(view.list('tool').map(({ entry }) => `${entry.server}.${entry.name}`))
    const pairs = servers.flatMap((server) => Array.from({ length: 100 }, (_, index) => `${server}.tool_${index}`))
    const outcomes = await Promise.all(
      pairs.map(async (tool) => {
        const { decision } = await gateway.why(agent, tool)
        const { entry } = await view.resolve('tool', tool)
        const happened = await gateway.handle(callOf({ caller, entry, input })).then(
          ({ isError }) => (isError ? 'failed' : 'allowed'),
          (error) => (error instanceof ToolwayError ? `${error.code} ${error.details.rule}` : String(error)),
        )
        return { tool, said: decision.allowed ? 'allowed' : `${decision.code} ${decision.rule}`, happened }
      }),
    )
    for (const { tool, said, happened } of outcomes) {
      if (said !== happened) expect({ agent, tool, happened }).toEqual({ agent, tool, happened: said })
      if (listed.has(tool) !== (said === 'allowed')) expect.fail(`${agent} and ${tool}: the list says otherwise`)
      counts[said === 'allowed' ? 'allowed' : 'denied']++
    }
  }
  expect(counts.allowed + counts.denied).toBe(many * 500)
  expect(counts.allowed).toBeGreaterThan(many * 40)
  expect(counts.denied).toBeGreaterThan(many * 40)
}

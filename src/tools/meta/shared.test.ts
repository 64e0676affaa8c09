import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Served } from '../../core/access.ts'
import { serversSentence } from '../../core/servers-sentence.ts'
import type { Health, ServerSummary } from '../../core/source-status.ts'
import { createTestGateway } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'

const server = (name: string, tools: number, description = '', health: Health = 'healthy'): ServerSummary => ({
  name,
  tools,
  status: { health, reason: '', since: 0, description, transport: 'stdio', breaker: 'closed' },
})

test('T4: find_tool, search_tools and list_servers say which servers and how many tools are behind them', () => {
  const gateway = createTestGateway({
    servers: { files: [echo('read'), echo('write')], memory: [echo('remember')] },
    descriptions: { files: 'Files under ./sandbox.\nMore.' },
  })
  const view = gateway.view({} as never)
  for (const name of ['find_tool', 'search_tools', 'list_servers']) {
    const goesBy = ({ entry }: Served) => entry.name === name || entry.aliases?.includes(name)
    const { entry } = view.list('tool').find(goesBy) as Served
    const description = entry.descriptionFor?.(view.servers(), name)
    expect(description).toContain(
      'Currently available: 3 tools on 2 servers: files (2): Files under ./sandbox; memory (1).',
    )
    expect(description?.includes('execute_code')).toBe(name === 'search_tools')
  }
})

test('S1: a description that is cut in the middle of an emoji stays readable for every client', () => {
  const sentence = serversSentence([server('a', 3, `${'x'.repeat(78)}🎉🎉`)])
  expect(sentence).toContain('xx…')
})

test('T4: the sentence about servers leaves out disabled ones, and is empty if there are no others', () => {
  expect(serversSentence([])).toBe('')
  expect(serversSentence([server('a', 3, '', 'disabled')])).toBe('')
  expect(serversSentence([server('a', 1), server('off', 0, '', 'disabled'), server('asleep', 0)])).toBe(
    ' Currently available: 1 tool on 2 servers: a (1); asleep.',
  )
})

test('T4: the sentence about servers has at most 600 characters; descriptions are dropped first, then names', () => {
  const some = Array.from({ length: 10 }, (_, index) => server(`server-${index}`, 5, 'd'.repeat(75)))
  expect(serversSentence(some)).toContain('server-0 (5), server-1 (5)')
  expect(serversSentence(some)).toContain('server-9 (5).')
  const many = Array.from({ length: 200 }, (_, index) => server(`server-${index}`, 5))
  expect(serversSentence(many)).toMatch(/ 1000 tools on 200 servers: server-0 \(5\), .* and \d+ more\.$/)
  const anyServers = fc.array(fc.tuple(fc.string({ maxLength: 70 }), fc.nat(999), fc.string({ maxLength: 300 })))
  fc.assert(
    fc.property(anyServers, (servers) => {
      const sentence = serversSentence(servers.map(([name, tools, description]) => server(name, tools, description)))
      expect(sentence.length).toBeLessThanOrEqual(600)
    }),
  )
})

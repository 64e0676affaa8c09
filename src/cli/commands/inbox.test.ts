import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import type { InboxItem, InboxView } from '../../admin/contract.ts'
import { inbox } from '../../admin/views.fixture.ts'
import { announcedIn, folder } from '../folder.fixture.ts'
import { recordedShell, toolway } from '../kit.fixture.ts'
import { inbox as inboxCommand } from './inbox.ts'

/** Something that listens where the configuration says that the gateway is. */
async function gateway(...views: readonly [InboxView, ...InboxView[]]) {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    const view = views[Math.min(asked.length, views.length) - 1]
    response.setHeader('content-type', 'application/json').end(JSON.stringify(view))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const at = await folder({ 'toolway.json': { server: { port }, stores: { path: './state' } } })
  await announcedIn(at, port)
  return {
    ...at,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await at[Symbol.asyncDispose]()
    },
  }
}

test('V7: inbox prints each item with commands and its page, safely for the terminal; --json prints what the gateway sent', async () => {
  const [item] = inbox.items
  const view = { items: [{ ...item!, detail: 'x\x1b[2Jy' }], dismissed: 2, left: 0 }
  await using at = await gateway(view)
  const { code, stdout, stderr } = await toolway(['inbox'], at)
  expect(code).toBe(0)
  expect(stdout).toContain('files is not working')
  expect(stdout).toContain('toolway doctor --server files\n')
  expect(stdout).toMatch(/ http:\/\/127\.0\.0\.1:\d+\/servers\/files\n/)
  expect(stdout).not.toContain('/admin/api')
  expect(stdout).not.toContain('\x1b[2J')
  expect(stderr).toContain('2')
  expect(at.asked).toEqual(['/admin/api/inbox'])
  const json = await toolway(['inbox', '--json'], at)
  expect(JSON.parse(json.stdout)).toEqual(view)
})

const approval: InboxItem = {
  ...{ id: 'approval:a1', kind: 'approval', severity: 'warning', title: 'intern wants to call files.write' },
  ...{ detail: 'Caller key:ci.', since: 1_000, until: 61_000, link: '/approvals' },
  actions: [{ name: 'Allow once', path: 'approvals/a1', body: { decision: 'once' } }],
}

test('V7: an approval is printed with its end and the commands that answer it', async () => {
  await using at = await gateway({ items: [approval], dismissed: 0, left: 0 })
  const { stdout } = await toolway(['inbox'], at)
  expect(stdout).toContain('1970-01-01T00:01:01.000Z')
  expect(stdout).toContain('toolway approvals allow a1\n')
  expect(stdout).toContain('toolway approvals deny a1 --reason WHY\n')
})

test('V7: commands that are printed quote names that a server chose', async () => {
  const definition = { ...approval, id: 'definition:files.$(x); ID', kind: 'definition' as const }
  await using at = await gateway({ items: [definition], dismissed: 0, left: 0 })
  expect((await toolway(['inbox'], at)).stdout).toContain("toolway pins approve 'files.$(x); ID'\n")
})

test.each([{ json: true }, { json: false }])(
  'V7: --follow prints an item once, and again only when more than numbers change, until interrupted (%j)',
  async ({ json }) => {
    const rejected = (count: number, severity: InboxItem['severity']): InboxItem => ({
      ...{ id: 'rejected:origin', kind: 'rejected', severity, title: `${count} requests refused` },
      ...{ detail: '', since: count, link: null, actions: [] },
    })
    const view = (...items: InboxItem[]): InboxView => ({ items, dismissed: 0, left: 0 })
    const last = view(rejected(12, 'warning'))
    await using at = await gateway(view(rejected(1, 'info')), view(approval, rejected(2, 'info')), last, last)
    const clock = createManualClock()
    const stop = new AbortController()
    const { shell, stdout } = recordedShell({ cwd: at.cwd, interrupted: stop.signal })
    const following = inboxCommand(shell, { follow: true, json }, clock)
    for (let asked = 1; asked <= 4; asked++) {
      await until(() => at.asked.length === asked && clock.pending > 0, { what: 'the next request' })
      clock.advance(2_000)
    }
    stop.abort()
    expect(await following).toBeUndefined()
    const lines = stdout().split('\n')
    if (json) {
      const items = lines.filter(Boolean).map((line) => JSON.parse(line) as InboxItem)
      expect(items).toEqual([rejected(1, 'info'), approval, rejected(12, 'warning')])
      return
    }
    const titles = lines.filter((line) => /refused|wants/.test(line))
    expect(titles.map((line) => line.split(' ')[0])).toEqual(['info', 'warning', 'warning'])
  },
)

test('V7: without a gateway, inbox says so', async () => {
  await using at = await folder({ 'toolway.json': { server: { port: 1 }, stores: { path: './state' } } })
  expect(await toolway(['inbox'], at)).toMatchObject({ code: 3 })
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { InboxView } from '../../serve/admin/contract.ts'
import { inbox } from '../../serve/admin/views.fixture.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

/** Something that listens where the configuration says that the gateway is. */
async function gateway(view: InboxView) {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    response.setHeader('content-type', 'application/json').end(JSON.stringify(view))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const at = await folder({ 'toolway.json': { server: { port }, stores: { path: './state' } } })
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

test('V7: inbox prints each item with its actions, safely for the terminal; --json prints what the gateway sent', async () => {
  const [item] = inbox.items
  const view = { items: [{ ...item!, detail: 'x\x1b[2Jy' }], dismissed: 2, left: 0 }
  await using at = await gateway(view)
  const { code, stdout, stderr } = await toolway(['inbox'], at)
  expect(code).toBe(0)
  expect(stdout).toContain('files is not working')
  expect(stdout).toContain('Restart: POST /admin/api/servers/files/restart')
  expect(stdout).not.toContain('\x1b[2J')
  expect(stderr).toContain('2')
  expect(at.asked).toEqual(['/admin/api/inbox'])
  const json = await toolway(['inbox', '--json'], at)
  expect(JSON.parse(json.stdout)).toEqual(view)
})

test('V7: without a gateway, inbox says so', async () => {
  await using at = await folder({ 'toolway.json': { server: { port: 1 }, stores: { path: './state' } } })
  expect(await toolway(['inbox'], at)).toMatchObject({ code: 3 })
})

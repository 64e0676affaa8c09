import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { rawRequest } from '../../../tests/fixtures/raw-http.ts'
import { silentLog } from '../../core/log.ts'
import { createTestAccess } from '../access.fixture.ts'
import { authenticateToken } from '../authenticate/index.ts'
import { httpConfig } from '../door.fixture.ts'
import { allowedHosts } from '../hosts.ts'
import { listen } from '../listen.ts'
import { createTestChat, endOf } from './chat.fixture.ts'
import { createOpenAiDoor } from './door.ts'
import { hi } from './openai.fixture.ts'

test('B7: more answers than a gateway can hold are sent away with a hint, and room comes back', async () => {
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
  const chat = createTestChat(async function* () {
    await goOn
    yield endOf()
  })
  const config = httpConfig()
  const server = createServer()
  const port = await listen(server, '127.0.0.1', 0)
  using door = createOpenAiDoor({
    ...{ chat: () => chat, access: createTestAccess(), authenticate: authenticateToken(undefined), config, limit: 1 },
    ...{ hosts: allowedHosts(config, port), clock: createManualClock(), log: silentLog },
  })
  server.on('request', (request, response) => door.handle(request, response, request.url ?? ''))
  const ask = () =>
    rawRequest(`http://127.0.0.1:${port}/v1/chat/completions`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [hi] }),
    })
  const first = ask()
  await expect.poll(() => chat.open).toBe(1)
  const second = await ask()
  expect([second.status, second.headers['retry-after']]).toEqual([503, '5'])
  expect(JSON.parse(second.text).error).toMatchObject({ type: 'server_error', code: 'OVERLOADED' })
  release()
  expect((await first).status).toBe(200)
  await expect.poll(async () => (await ask()).status).toBe(200)
  server.close()
})

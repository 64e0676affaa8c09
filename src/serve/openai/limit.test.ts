import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { rawRequest } from '../../../tests/fixtures/raw-http.ts'
import { Budget } from '../../core/limits/budget.ts'
import { silentLog } from '../../core/log.ts'
import { createTestAccess } from '../access.fixture.ts'
import type { Authenticate } from '../auth/identity.ts'
import { admitWith } from '../auth/throttle.fixture.ts'
import { authenticateToken } from '../auth/token.fixture.ts'
import { createBodyReader } from '../http/bodies.ts'
import { allowedHosts } from '../http/hosts.ts'
import { listen } from '../http/listen.ts'
import { httpConfig } from '../http/server.fixture.ts'
import { createTestChat, endOf } from './chat.fixture.ts'
import { OpenAiEndpoint } from './endpoint.ts'
import { hi } from './openai.fixture.ts'

/** A endpoint with room for so many answers, none of which ends before it is released. */
async function openServer(limit: number, authenticate: Authenticate) {
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
  const chat = createTestChat(async function* () {
    await goOn
    yield endOf()
  })
  const config = httpConfig()
  const server = createServer()
  const port = await listen(server, '127.0.0.1', 0)
  const clock = createManualClock()
  const endpoint = new OpenAiEndpoint({
    ...{ chat: () => chat, access: createTestAccess(), authenticate, bodies: createBodyReader(config) },
    answers: new Budget('chat_answers', { what: 'answers', limit, perCaller: Math.ceil(limit / 2) }),
    ...{ admit: admitWith(authenticate, clock), hosts: allowedHosts(config, port), clock, log: silentLog },
  })
  server.on('request', (request, response) => endpoint.handle(request, response, request.url ?? ''))
  const ask = (authorization?: string) =>
    rawRequest(`http://127.0.0.1:${port}/v1/chat/completions`, {
      headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      body: JSON.stringify({ messages: [hi] }),
    })
  const close = () => {
    endpoint[Symbol.dispose]()
    server.close()
  }
  return { chat, ask, release, [Symbol.dispose]: close }
}

test('B7: more answers than the limit are refused with a retry time until one ends', async () => {
  using endpoint = await openServer(1, authenticateToken(undefined))
  const { chat, ask, release } = endpoint
  const first = ask()
  await expect.poll(() => chat.open).toBe(1)
  const second = await ask()
  expect([second.status, second.headers['retry-after']]).toEqual([503, '5'])
  expect(JSON.parse(second.text).error).toMatchObject({ type: 'server_error', code: 'OVERLOADED' })
  release()
  expect((await first).status).toBe(200)
  await expect.poll(async () => (await ask()).status).toBe(200)
})

test('B7: one principal has at most half of the answers under way, so that others always get theirs', async () => {
  using endpoint = await openServer(4, (principal = '') => ({ ...nobodyInParticular, principal }))
  const { chat, ask, release } = endpoint
  const answers = [ask('anna'), ask('anna')]
  await expect.poll(() => chat.open).toBe(2)
  expect((await ask('anna')).status).toBe(503)
  answers.push(ask('bert'))
  await expect.poll(() => chat.open).toBe(3)
  release()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200])
  await expect.poll(async () => (await ask('anna')).status).toBe(200)
})

const nobodyInParticular = { authenticated: true, admin: false, agents: [] }

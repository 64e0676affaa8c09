import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpServer, startHttpServer } from '../../fixtures/http-server.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { keyFor } from '../admin/people.ts'

const [attacker, bystander] = [keyFor('attacker', ['default']), keyFor('bystander', ['default'])]

/** Two callers of one gateway, whose breaker opens after three failures. Each call returns its response as text. */
async function startWith(web: HttpServer, health: object) {
  const toolway = await startToolway({
    mcpServers: { web: { url: web.url } },
    defaults: { timeout: '1s' },
    breaker: { failures: 3 },
    health,
    auth: { keys: [attacker.configured, bystander.configured] },
  })
  const [attackers, bystanders] = [attacker, bystander].map(({ key }) => rawModern({ ...toolway, token: key }))
  return {
    never: () => attackers?.('tools/call', { name: 'web__never', arguments: {} }),
    failure: () => attackers?.('tools/call', { name: 'web__failure', arguments: {} }),
    echo: () => bystanders?.('tools/call', { name: 'web__echo', arguments: { message: 'here' } }),
    [Symbol.asyncDispose]: () => toolway[Symbol.asyncDispose](),
  }
}

const times = (count: number, work: () => unknown) => Promise.all(Array.from({ length: count }, work))

let web: HttpServer
beforeAll(async () => {
  web = await startHttpServer()
})
afterAll(() => web[Symbol.asyncDispose]())

test('V6, J3: timeouts of one caller do not open the breaker of a server that answers another caller', async () => {
  await using callers = await startWith(web, { interval: 0 })
  let over = false
  const attacking = times(12, callers.never).finally(() => {
    over = true
  })
  do expect(await callers.echo()).toContain('Echo: here')
  while (!over)
  for (const text of await attacking) expect(text).toContain('TIMEOUT')
  expect(await callers.echo()).toContain('Echo: here')
})

test('V6, J3: failures of one caller do not open the breaker for another caller, even if it has not called before', async () => {
  await using callers = await startWith(web, { interval: 0 })
  await times(12, callers.failure)
  expect(await callers.failure()).toContain('CIRCUIT_OPEN')
  for (let round = 0; round < 3; round++) {
    expect(await callers.echo()).toContain('Echo: here')
    for (const text of await times(12, callers.failure)) expect(text).toContain('OUTCOME_UNKNOWN')
  }
})

test('J3: timeouts open the breaker of a server that answers only health checks', async () => {
  await using callers = await startWith(web, { interval: '100ms' })
  for (const text of await times(12, callers.never)) expect(text).toContain('TIMEOUT')
  expect(await callers.never()).toContain('CIRCUIT_OPEN')
})

test('J3: timeouts of two callers open the breaker of a server that answers no caller any more', async () => {
  await using callers = await startWith(web, { interval: '100ms' })
  await callers.echo()
  web.hangs = true
  try {
    await times(3, callers.never)
    expect(await callers.never()).toContain('CIRCUIT_OPEN')
    expect(await callers.echo()).toContain('TIMEOUT')
    expect(await callers.echo()).toContain('CIRCUIT_OPEN')
  } finally {
    web.hangs = false
  }
})

import { expect, test } from 'vitest'
import { startBalancer } from '../../fixtures/balancer.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { withPart } from '../../fixtures/with-part.ts'

withPart('redis-server', 'B10: a replica that is killed', () => {
  test('its sessions go on at the others, and only its own calls fail', async () => {
    await using open = new AsyncDisposableStack()
    const token = 'the-token-of-the-whole-fleet'
    const redis = open.use(await startRedis())
    const config = { auth: { token }, stores: { redis: { url: redis.url } } }
    const replicas = await Promise.all([startCommand(config), startCommand(config)])
    for (const replica of replicas) open.use(replica)
    const [doomed, other] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
    const balancer = open.use(await startBalancer(replicas.map(({ url }) => url)))
    const clients: TestClient[] = []
    for (let number = 0; number < 4; number++) {
      clients.push(open.use(await connect('v1', { endpoint: { url: balancer.url, token } })))
    }
    const now = (client: TestClient) => client.callTool('time', { name: 'get_time_utc' })
    for (const client of clients) expect((await now(client)).isError).not.toBe(true)

    await doomed.stop('SIGKILL')
    balancer.without(doomed.url)
    for (const client of clients) expect((await now(client)).isError).not.toBe(true)
    expect(other.said()).toContain('went on with a session whose replica is gone')
  })
})

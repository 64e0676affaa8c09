import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import { runningGateway } from './running-gateway.ts'

test('G9: a worker that is being replaced is not taken for another program', async () => {
  const message = 'The worker that answers this is being replaced; try again in a second.'
  const refused = { error: { code: 'OVERLOADED', message } }
  await using server = createServer((_, response) => response.writeHead(503).end(JSON.stringify(refused)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const config = configSchema.parse({ server: { port }, auth: { token: 'none' } })
  const gateway = await runningGateway(config as Config, AbortSignal.timeout(5000))
  await expect(gateway.get('stats')).rejects.toMatchObject({ code: 'OVERLOADED', message })
})

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { unusedPort } from '../../../tests/fixtures/listening.ts'
import { version } from '../../runtime/package-paths.ts'
import { announcedIn } from '../folder.fixture.ts'
import { checkup, configured } from './checkup.fixture.ts'

/** Something that listens where the configuration says that the gateway is. */
async function taken(answer: RequestListener, announced?: object) {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization}`)
    answer(request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const at = await configured({ server: { port } })
  if (announced) await announcedIn(at, port, announced)
  return {
    ...at,
    port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await at[Symbol.asyncDispose]()
    },
  }
}

const overview = {
  version,
  startedAt: Date.now() - 3 * 3_600_000 - 5_000,
  servers: { healthy: 4, degraded: 0, unhealthy: 0, stale: 1, disabled: 0 },
  tools: 48,
  reload: { lastError: null },
}

const telling =
  (answer: object, status = 200): RequestListener =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))

test('B11: a free port and port 0 are fine', async () => {
  const port = await unusedPort()
  await using at = await configured({ server: { port } })
  expect((await checkup(at)).of('port')).toMatchObject([{ status: 'ok', message: `127.0.0.1:${port} is free` }])
  await using any = await configured()
  expect((await checkup(any)).of('port')).toMatchObject([
    { status: 'ok', message: expect.stringContaining('any free') },
  ])
})

test('B11, B6: a port in use by another program is a problem, and that program gets no token', async () => {
  await using at = await taken((_, response) => response.end('<h1>It works</h1>'))
  const { code, of } = await checkup(at)
  expect(code).toBe(5)
  expect(of('port')).toMatchObject([
    {
      status: 'problem',
      message: expect.stringContaining('another program'),
      remedy: expect.stringContaining(`lsof -nP -iTCP:${at.port}`),
    },
  ])
  await using other = await taken(telling({ info: { title: 'Toolway admin API' } }))
  expect((await checkup(other)).of('port')).toMatchObject([
    { status: 'problem', message: expect.stringContaining('another state folder') },
  ])
  for (const { seen } of [at, other]) expect(new Set(seen)).toEqual(new Set(['/admin/api/openapi.json undefined']))
})

test('B11: the state of our own gateway is fetched', async () => {
  await using at = await taken(telling(overview), {})
  const { of } = await checkup(at)
  expect(of('port')).toMatchObject([{ status: 'ok', message: expect.stringMatching(/3 hours: 5 servers, 48 tools$/) }])
  expect(of('port')[0]?.message).toContain(`process ${process.pid}`)
})

test.each([
  [
    'could not take over the configuration',
    { reload: { lastError: 'prot is unknown' } },
    /could not be applied: prot is unknown/,
  ],
  ['has sick servers', { servers: { healthy: 1, 'needs-auth': 1 }, unhealthy: 1 }, /2 servers \(1 not healthy\)/],
])('B11: a gateway that %s is a warning', async (_, more, message) => {
  await using at = await taken(telling({ ...overview, ...more }), {})
  expect((await checkup(at)).of('port')).toMatchObject([{ status: 'warning', message: expect.stringMatching(message) }])
})

test('B11: a gateway of another version is a warning, and one that does not answer a problem', async () => {
  await using at = await taken(telling(overview), { version: '0.0.1-other' })
  expect((await checkup(at)).of('port')).toMatchObject([
    { status: 'warning', message: expect.stringMatching(/0\.0\.1-other .*; this command is/) },
  ])
  await using silent = await taken(
    telling({ error: { code: 'AUTH_REQUIRED', message: 'Show a credential.' } }, 401),
    {},
  )
  expect((await checkup(silent)).of('port')).toMatchObject([
    { status: 'problem', message: expect.stringMatching(/Show a credential\./) },
  ])
})

test('B11: an address that this machine does not have is a problem', async () => {
  await using at = await configured({ server: { host: '192.0.2.1', port: 4322 } })
  expect((await checkup(at)).of('port')).toMatchObject([
    { status: 'problem', message: expect.stringContaining('no such address'), remedy: 'server.host: 127.0.0.1' },
  ])
})

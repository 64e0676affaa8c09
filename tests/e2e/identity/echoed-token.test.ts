import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { openGateway } from '../../../src/admin/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { openOAuth, signIn } from '../../../src/runtime/oauth-sign-in.ts'
import { createLog } from '../../../src/telemetry/log.ts'
import { json, startIssuer } from '../../../src/upstream/oauth/issuer.fixture.ts'
import { startResource } from '../../../src/upstream/oauth/resource.fixture.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

test('B6: a server that repeats its token in errors, names and logs gets it neither into the log nor into audit', async () => {
  await using folder = await temporaryFolder()
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const server = { url: resource.url, auth: { type: 'oauth' } }
  const audit = { path: './audit', arguments: 'full' }
  const file = await writeConfig(folder.path, { audit, mcpServers: { files: server } }, 'echoed')
  const loaded = await loadConfig({ paths: [file], env: process.env, cwd: folder.path })
  let logged = ''
  const log = createLog({
    level: 'debug',
    destination: new PassThrough().on('data', (chunk) => {
      logged += chunk
    }),
  })
  await using oauth = await openOAuth(loaded.config, { clock: systemClock, log })
  await signIn({
    oauth,
    server: 'files',
    config: loaded.config.mcpServers.files as never,
    browse: async (url) => void (await fetch(url)),
    withinMs: 5_000,
    clock: systemClock,
    signal: new AbortController().signal,
  })
  await using gateway = await openGateway(loaded, { log })
  const { url } = await gateway.listen()
  const session = await rawSession({ url, token: gateway.token ?? '' })
  await until(() => gateway.servers().some(({ status }) => status.health === 'healthy'), { what: 'the server' })
  const token = resource.got.at(-1)?.replace('Bearer ', '') ?? ''
  expect(token).toMatch(/^access-/)

  resource.behaviour.answer = (response, authorization) =>
    json(response, 200, { jsonrpc: '2.0', id: null, error: { code: -32000, message: `not with ${authorization}` } })
  await session.ask('tools/call', { name: 'files__work', arguments: { pasted: `Bearer ${token}` } })
  await gateway.refresh()
  resource.behaviour.answer = (response, authorization) =>
    void response.writeHead(418, { 'x-why': authorization }).end(authorization)
  await session.ask('tools/call', { name: 'files__work', arguments: { [token]: [Buffer.from(token).toString('hex')] } })
  await session.ask('tools/call', { name: `files__${token}`, arguments: {} })
  await gateway[Symbol.asyncDispose]()

  const written = readdirSync(join(folder.path, 'audit'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .join()
  for (const text of [written, logged]) {
    expect(text).toContain('[redacted]')
    expect(text).not.toContain(token)
    expect(text).not.toContain(Buffer.from(token).toString('hex'))
  }
})

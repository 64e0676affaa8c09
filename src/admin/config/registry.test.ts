import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { systemClock } from '../../core/clock.ts'
import { createRegistryClient } from './registry.ts'

let answer: { status: number; body: string | undefined; location?: string }
let asked: string[]
const fake = createServer((request, response) => {
  asked.push(request.url ?? '')
  if (answer.body === undefined) return
  response.writeHead(answer.status, answer.location === undefined ? {} : { location: answer.location })
  response.end(answer.body)
})
let origin: string
beforeAll(async () => {
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`
})
afterAll(() => {
  fake.closeAllConnections()
  fake.close()
})
beforeEach(() => {
  asked = []
})

const { signal } = new AbortController()
const client = () => createRegistryClient(() => origin, systemClock)
const found = (...servers: object[]) => {
  answer = { status: 200, body: JSON.stringify({ servers: servers.map((server) => ({ server, _meta: {} })) }) }
  return client().search('weather', signal)
}
const entry = (more: object) => ({ name: 'io.example/weather', description: 'Weather', version: '1.2.0', ...more })
const npm = { registryType: 'npm', identifier: '@example/weather', version: '1.2.0', transport: { type: 'stdio' } }

describe('V9: the MCP registry', () => {
  test('is asked for the latest versions that match, under the configured path', async () => {
    await found()
    answer = { status: 200, body: '{"servers":[]}' }
    await createRegistryClient(() => `${origin}/own/v0.1/`, systemClock).search('a b&c', signal)
    expect(asked).toEqual([
      '/v0/servers?search=weather&version=latest&limit=30',
      '/own/v0.1/servers?search=a+b%26c&version=latest&limit=30',
    ])
  })

  test('packages become commands with what has to be filled in', async () => {
    const environmentVariables = [
      { name: 'KEY', description: 'From your account', isRequired: true, isSecret: true },
      { name: 'UNITS', default: 'metric' },
      { name: 'OPTIONAL' },
    ]
    const packageArguments = [
      { type: 'positional', value: 'serve' },
      { type: 'named', name: '--city', default: 'Rome' },
      { type: 'positional', valueHint: 'folder', isRequired: true },
      { type: 'named', name: '--verbose' },
    ]
    const packages = [
      { ...npm, environmentVariables, packageArguments },
      { registryType: 'pypi', identifier: 'weather-mcp', version: '2.0' },
      { registryType: 'oci', identifier: 'ghcr.io/example/weather:1.2.0', environmentVariables },
      { registryType: 'mcpb', identifier: 'https://example.com/weather.mcpb' },
    ]
    const [server] = await found(entry({ packages }))
    expect(server).toMatchObject({ name: 'io.example/weather', version: '1.2.0' })
    expect(server?.choices).toEqual([
      {
        label: 'npm @example/weather 1.2.0',
        name: 'weather',
        definition: {
          command: 'npx',
          args: ['-y', '@example/weather@1.2.0', 'serve', '--city', 'Rome', '<folder>'],
          env: { KEY: '', UNITS: 'metric' },
        },
        missing: ['<folder>', 'KEY: From your account'],
      },
      {
        ...{ label: 'pypi weather-mcp 2.0', name: 'weather', missing: [] },
        definition: { command: 'uvx', args: ['weather-mcp@2.0'] },
      },
      {
        ...{ label: 'oci ghcr.io/example/weather:1.2.0', name: 'weather', missing: ['KEY: From your account'] },
        definition: {
          command: 'docker',
          args: ['run', '-i', '--rm', '-e', 'KEY', '-e', 'UNITS', 'ghcr.io/example/weather:1.2.0'],
          env: { KEY: '', UNITS: 'metric' },
        },
      },
    ])
  })

  test("Toolway's own entry for the registry is understood", async () => {
    const own = JSON.parse(readFileSync(new URL('../../../server.json', import.meta.url), 'utf8'))
    const [server] = await found(own)
    expect(server?.choices).toMatchObject([
      { name: 'toolway', definition: { command: 'npx', args: ['-y', expect.stringMatching(/^toolway@/), 'stdio'] } },
    ])
  })

  test('remote servers become URLs with headers', async () => {
    const headers = [{ name: 'Authorization', value: 'Bearer {token}', isRequired: true, isSecret: true }]
    const remotes = [
      { type: 'streamable-http', url: 'https://{tenant}.example.com/mcp', headers },
      { type: 'sse', url: 'https://mcp.example.com/sse' },
      { type: 'streamable-http', url: 'file:///etc/passwd' },
    ]
    const [server] = await found(entry({ remotes }))
    expect(server?.choices.map(({ definition, missing }) => [definition, missing])).toEqual([
      [
        { url: 'https://{tenant}.example.com/mcp', headers: { Authorization: 'Bearer {token}' } },
        ['{tenant} in the URL', 'Authorization'],
      ],
      [{ url: 'https://mcp.example.com/sse', transport: 'sse' }, []],
    ])
  })

  test('nothing that Toolway or a program would expand or read as an option is offered', async () => {
    const packages = [
      { ...npm, identifier: '--eval=x' },
      { ...npm, identifier: '../../evil' },
      { ...npm, version: '1 --registry=http://evil' },
      { ...npm, environmentVariables: [{ name: 'A', value: '${file:~/.ssh/id_ed25519}' }] },
      { ...npm, packageArguments: [{ type: 'positional', value: '${AWS_SECRET_ACCESS_KEY}' }] },
      { registryType: 'constructor', identifier: 'x' },
    ]
    const remotes = [{ type: 'streamable-http', url: 'https://x/${TOKEN}' }]
    const [server] = await found(entry({ packages, remotes }))
    expect(server?.choices).toEqual([])
  })

  test('entries in another format and further versions are left out', async () => {
    const servers = await found({ name: 1 }, entry({}), entry({ version: '1.1.0' }), { name: 'io.example/other' })
    expect(servers.map(({ name, version }) => [name, version])).toEqual([
      ['io.example/weather', '1.2.0'],
      ['io.example/other', ''],
    ])
  })

  test('failures, redirects and large answers are errors; nothing is asked without registry.url', async () => {
    const unavailable = { code: 'SERVER_UNAVAILABLE' }
    const other = `${origin}/elsewhere`
    for (const bad of [
      { status: 500, body: 'no' },
      { status: 302, body: '', location: other },
      { status: 200, body: 'no JSON' },
      { status: 200, body: `{"servers":[],"x":"${'x'.repeat(5 * 1024 * 1024)}"}` },
    ]) {
      answer = bad
      await expect(client().search('x', signal)).rejects.toMatchObject(unavailable)
    }
    expect(asked).not.toContain('/elsewhere')
    const gone = createRegistryClient(() => 'http://127.0.0.1:1', systemClock)
    await expect(gone.search('x', signal)).rejects.toMatchObject(unavailable)
    const none = createRegistryClient(() => undefined, systemClock)
    await expect(none.search('x', signal)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('an answer that does not come ends after a time or with the request; few are awaited at once', async () => {
    answer = { status: 200, body: undefined }
    const clock = createManualClock()
    const slow = createRegistryClient(() => origin, clock)
    const stop = new AbortController()
    const waiting = Array.from({ length: 4 }, () => slow.search('x', stop.signal))
    await expect(slow.search('x', stop.signal)).rejects.toMatchObject({ code: 'OVERLOADED' })
    await expect.poll(() => asked.length).toBe(4)
    clock.advance(10_000)
    expect(await Promise.allSettled(waiting)).toMatchObject(
      waiting.map(() => ({ reason: { code: 'SERVER_UNAVAILABLE' } })),
    )
    const cancelled = slow.search('x', stop.signal)
    await expect.poll(() => asked.length).toBe(5)
    stop.abort()
    await expect(cancelled).rejects.toThrow()
  })
})

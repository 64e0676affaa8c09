import { expect, test } from 'vitest'
import { type Config, configSchema } from '../../config/schema.ts'
import { openTestServer } from './server.fixture.ts'

const config = (written: object) => configSchema.parse(written) as Config
const endpoints = { research: { description: 'Papers '.repeat(30) }, files: {} }

interface Server {
  readonly name: string
  readonly description: string
  readonly remotes: readonly { readonly url: string; readonly headers?: readonly object[] }[]
}
interface Page {
  readonly servers: readonly { readonly server: Server }[]
  readonly metadata: { readonly nextCursor: string }
}

async function openRegistry(written: object, allowedHosts: string[] = []) {
  const published = config({ endpoints, ...written })
  const server = await openTestServer({
    ...{ endpoints: published.endpoints, published: () => published },
    config: { allowedHosts },
  })
  const get = async (path: string, headers = {}) => {
    const { statusCode, body } = await server.fetchRaw({
      path,
      method: 'GET',
      headers: { authorization: undefined, ...headers },
    })
    return { status: statusCode, json: (await body.json()) as Page }
  }
  return { get, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('V15: the registry is off unless it is configured', async () => {
  await using off = await openRegistry({})
  expect((await off.get('/v0.1/servers')).status).toBe(404)
})

test('V15: the registry has pages, a search and versions, in names and lengths that the format allows', async () => {
  await using registry = await openRegistry({ registry: { serve: true } }, ['tools.example.com'])
  const { json: first } = await registry.get('/v0.1/servers?limit=2')
  const { json: second } = await registry.get(
    `/v0.1/servers?limit=2&cursor=${encodeURIComponent(first.metadata.nextCursor)}`,
  )
  const all = [...first.servers, ...second.servers].map(({ server }) => server)
  expect(all.map(({ name }) => name.split('/')[1])).toEqual(['all.tools', 'research', 'files'])
  expect(second.metadata).toEqual({ count: 1 })
  for (const { name, description, remotes } of all) {
    expect(name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
    expect(description.length).toBeLessThanOrEqual(100)
    expect(remotes[0]?.headers?.[0]).toMatchObject({ name: 'Authorization', value: 'Bearer {token}', isSecret: true })
  }
  const { json: found } = await registry.get('/v0.1/servers?search=RESEARCH', { host: 'tools.example.com' })
  expect(found.servers).toMatchObject([
    {
      server: {
        name: 'toolway.tools.example.com/research',
        remotes: [{ url: 'https://tools.example.com/mcp/research' }],
      },
    },
  ])
  expect((await registry.get('/v0.1/servers?version=9.9.9')).json.servers).toEqual([])
  const name = 'toolway.127.0.0.1%2Ffiles'
  expect((await registry.get(`/v0.1/servers/${name}/versions/0.0.0`)).status).toBe(200)
  for (const path of [`${name}/versions/9.9.9`, 'toolway.127.0.0.1%2Fother/versions', '%E0%A4%A/versions/latest'])
    expect(await registry.get(`/v0.1/servers/${path}`)).toEqual({ status: 404, json: { error: 'Server not found' } })
  expect((await registry.get('/v0.1/servers', { host: 'evil.example' })).status).toBe(403)
})

test('V15: the registry asks for no token where clients need none or an identity provider gives them one', async () => {
  const jwt = { issuer: 'https://id.test', audience: 'a', jwksUrl: 'https://id.test/keys' }
  for (const auth of [{ token: 'none' }, { jwt }]) {
    await using registry = await openRegistry({ registry: { serve: true }, auth })
    expect((await registry.get('/v0.1/servers')).json.servers[0]?.server.remotes[0]?.headers).toBeUndefined()
  }
})

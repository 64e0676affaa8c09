import { expect, test } from 'vitest'
import { configSchema } from '../schema.ts'

const faults = (config: object): string[] =>
  configSchema.safeParse(config).error?.issues.map(({ message }) => message) ?? []
const server = (auth: object, url = 'https://mcp.example.com/mcp') => ({
  mcpServers: { a: { url, auth: { type: 'oauth', ...auth } } },
})

test('B6: OAuth to a server needs TLS, except on this machine, and nothing else', () => {
  expect(faults(server({}))).toEqual([])
  expect(faults(server({}, 'http://127.0.0.1:8000/mcp'))).toEqual([])
  expect(faults(server({}, 'http://mcp.example.com/mcp'))).toEqual([expect.stringContaining('an https:// url')])
})

test('B6: the grant client_credentials needs an id and a secret or key, and excludes perPrincipal', () => {
  const itself = { grant: 'client_credentials', clientId: 'a', clientSecret: 'b' }
  expect(faults(server(itself))).toEqual([])
  expect(faults(server({ ...itself, clientSecret: undefined, privateKey: 'pem' }))).toEqual([])
  expect(faults(server({ ...itself, clientSecret: undefined }))).toEqual([expect.stringContaining('auth.clientSecret')])
  expect(faults(server({ clientSecret: 'b' }))).toEqual([expect.stringContaining('auth.clientId')])
  expect(faults(server({ ...itself, perPrincipal: true }))).toEqual([expect.stringContaining('authorization_code')])
})

test('B6: a jwksUrl without TLS is rejected', () => {
  const jwt = { issuer: 'https://id.example.com', audience: 'a', jwksUrl: 'https://id.example.com/jwks' }
  expect(faults({ auth: { jwt } })).toEqual([])
  expect(faults({ auth: { jwt: { ...jwt, jwksUrl: 'http://localhost:9000/jwks' } } })).toEqual([])
  for (const change of [{ jwksUrl: 'http://id.example.com/jwks' }, { issuer: 'http://id.example.com' }]) {
    expect(faults({ auth: { jwt: { ...jwt, ...change } } })).toEqual([expect.stringContaining('https://')])
  }
  expect(faults({ auth: { jwt: { ...jwt, scopes: { 'two words': ['x'] } } } })).toHaveLength(1)
})

import { expect, test } from 'vitest'
import { type Config, configSchema } from './schema.ts'
import { knownKeysAt, secretKindAt, secretSettings } from './schema-lookup.ts'

const config = configSchema.parse({
  auth: { token: 'a-token-of-the-operator', keys: [{ id: 'ci', hash: `sha256:${'0'.repeat(64)}` }] },
  mcpServers: {
    token: { command: 'server', args: ['--verbose'], env: { A: 'b' } },
    remote: { url: 'https://example.com/mcp', auth: { type: 'bearer', token: 'abc' } },
  },
  models: { gpt: { kind: 'openai', baseUrl: 'https://example.com/v1', model: 'm', apiKey: 'k' } },
}) as Config

test('B6: every secret setting of a configuration is found by the marks of the schema', () => {
  const found = [...secretSettings(config)].map(({ path, kind }) => [path.join('.'), kind])
  expect(found).toEqual(
    expect.arrayContaining([
      ['auth.token', true],
      ['auth.keys.0.hash', 'digest'],
      ['mcpServers.token.args', 'words'],
      ['mcpServers.token.env', 'variables'],
      ['mcpServers.remote.url', 'address'],
      ['mcpServers.remote.auth.token', true],
      ['models.gpt.apiKey', true],
      ['models.gpt.baseUrl', 'address'],
    ]),
  )
  expect(found.filter(([path]) => path === 'mcpServers.token')).toEqual([])
})

test('B6: a mark is found by its path, whatever the server is called', () => {
  expect(secretKindAt(['mcpServers', 'any', 'auth', 'clientSecret'])).toBe(true)
  expect(secretKindAt(['stores', 'redis'])).toBe('section')
  expect(secretKindAt(['sinks', 'any', 'arguments'])).toBe('payload')
  expect(secretKindAt(['server', 'port'])).toBeUndefined()
  expect(secretKindAt(['no', 'such', 'key'])).toBeUndefined()
})

test('the keys that the schema knows are found through unions and transformations', () => {
  expect(knownKeysAt(configSchema, ['mcpServers', 'any', 'auth'])).toEqual(
    expect.arrayContaining(['token', 'clientId']),
  )
  expect(knownKeysAt(configSchema, ['limits', 'servers'])).toEqual([])
})

import { describe, expect, test } from 'vitest'
import { isLoopback } from '../lib/url.ts'
import { project } from './project.fixture.ts'

describe('B6: a gateway that asks for no credential is for this machine alone', () => {
  test.each([
    '0.0.0.0',
    '::',
    '10.0.0.7',
    '192.168.1.5',
    'gateway.example.com',
    'localhost.example.com',
    '::ffff:10.0.0.7',
  ])('auth.token none with server.host %s does not load', async (host) => {
    const { problems } = await project({ 'toolway.yaml': `server: { host: "${host}" }\nauth: { token: none }` })
    expect(await problems()).toMatchObject([
      { key: 'auth.token', line: 2, message: expect.stringContaining('server.allowUnauthenticated: true') },
    ])
  })

  test('API keys do not help: requests without one are still accepted', async () => {
    const key = `{ id: ci, hash: "sha256:${'0'.repeat(64)}" }`
    const { problems } = await project({
      'toolway.yaml': `server: { host: 0.0.0.0 }\nauth: { token: none, keys: [${key}] }`,
    })
    expect(await problems()).toMatchObject([{ key: 'auth.token' }])
  })

  test.each(['127.0.0.1', '127.1.2.3', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST'])(
    'server.host %s loads',
    async (host) => {
      expect(isLoopback(host)).toBe(true)
      const { load } = await project({ 'toolway.yaml': `server: { host: "${host}" }\nauth: { token: none }` })
      expect((await load()).config.server.host).toBe(host)
    },
  )

  test('server.allowUnauthenticated lets it load, with a warning; a token needs nothing', async () => {
    const open = 'server: { host: 0.0.0.0, allowUnauthenticated: true }\nauth: { token: none }'
    const { load } = await project({ 'toolway.yaml': open, 'token.yaml': 'server: { host: 0.0.0.0 }' })
    expect((await load()).warnings).toEqual([expect.stringContaining('auth.token is none')])
    expect((await load({ paths: ['token.yaml'] })).warnings).toEqual([])
  })
})

describe('B6: a token with fewer than 16 characters', () => {
  test('is a warning on loopback and an error elsewhere; neither repeats it', async () => {
    const { problems, load } = await project({
      'short.yaml': 'auth: { token: sk-abc123 }',
      'variable.yaml': 'auth: { token: "${TOKEN}" }',
      'exposed.yaml': 'server: { host: 0.0.0.0, allowUnauthenticated: true }\nauth: { token: "${TOKEN}" }',
      'long.yaml': 'server: { host: 0.0.0.0 }\nauth: { token: hunter2-hunter2x }',
    })
    const env = { TOKEN: 'sk-abc123' }
    for (const path of ['short.yaml', 'variable.yaml']) {
      const { config, warnings } = await load({ paths: [path], env })
      expect(config.auth.token).toBe('sk-abc123')
      expect(warnings).toEqual([expect.stringMatching(/^auth\.token .*16 characters/)])
      expect(warnings.join()).not.toContain('sk-abc')
    }
    const refused = await problems({ paths: ['exposed.yaml'], env })
    expect(refused).toMatchObject([
      { key: 'auth.token', line: 2, message: expect.stringMatching(/16 characters.*0\.0\.0\.0/) },
    ])
    expect(JSON.stringify(refused)).not.toContain('sk-abc')
    expect((await load({ paths: ['long.yaml'] })).warnings).toEqual([])
  })
})

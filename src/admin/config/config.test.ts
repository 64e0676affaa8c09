import { describe, expect, test } from 'vitest'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import { type Config, configSchema } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { compareConfigs } from '../../runtime/config-difference.ts'
import { redactConfig } from './config.ts'
import { secretIn, secretive } from './secrets.fixture.ts'

const configOf = (written: object) => configSchema.parse(written) as unknown as Config

const shown = (config: Config) =>
  redactConfig(
    config,
    createRedactor({ secrets: secretsOf(config, secretSettings(config)), keys: config.audit.redact }),
  )

describe('B6: the configuration as it is shown', () => {
  const config = configOf(secretive(7))

  test('the fixture has a secret at every key that can hold one', () => {
    const written = JSON.stringify(secretive(7))
    expect(written.match(new RegExp(secretIn(7), 'g'))?.length).toBeGreaterThan(30)
  })

  test('contains none of them, even if the redactor knows no secrets', () => {
    expect(JSON.stringify(shown(config))).not.toMatch(secretIn(7))
    const ignorant = createRedactor({ secrets: [], keys: [] })
    const { sinks: _, ...others } = redactConfig(config, ignorant)
    expect(JSON.stringify(others)).not.toMatch(secretIn(7))
  })

  test('still shows the rest', () => {
    expect(shown(config)).toMatchObject({
      auth: { token: '[redacted]', keys: [{ id: 'ci', hash: '[redacted]' }] },
      mcpServers: {
        process: {
          command: 'server',
          args: ['--token', '[redacted]', '--api-key=[redacted]', '--password', '[redacted]', 'PGPASSWORD=[redacted]'],
          env: { GITHUB_TOKEN: '[redacted]', PIN: '[redacted]', REGION: '[redacted]' },
        },
        remote: {
          url: 'https://[redacted]@host.example.com/path?[redacted]#[redacted]',
          headers: { Authorization: '[redacted]', 'X-Team': '[redacted]' },
        },
      },
      models: { gpt: { model: 'm', apiKey: '[redacted]' } },
      sinks: { tool: { tool: 'process.post' } },
      limits: { queue: 256 },
    })
  })

  test('hides what imports and logs hide, and paths and words under secret names', () => {
    const random = 'a8F3kd93kDk29dkW0'
    const args = [
      ...['--header', 'Authorization: Bearer abc', '--env=API_KEY=def', '-c', 'A=1 TOKEN=ghi node x'],
      ...['--db', 'Server=db;Password=jkl', '--token', '/mno', '-e', 'TOKEN=none', '--cookie-consent', 'all'],
    ]
    const servers = { a: { command: 'npx', args }, b: { url: `https://host.example.com/${random}/mcp` } }
    const ignorant = createRedactor({ secrets: [], keys: [] })
    expect(redactConfig(configOf({ mcpServers: servers }), ignorant)).toMatchObject({
      mcpServers: {
        a: {
          args: [
            ...['--header', 'Authorization: Bearer [redacted]', '--env=API_KEY=[redacted]'],
            ...['-c', 'A=1 TOKEN=[redacted] node x', '--db', 'Server=db;Password=[redacted]'],
            ...['--token', '[redacted]', '-e', 'TOKEN=[redacted]', '--cookie-consent', 'all'],
          ],
        },
        b: { url: 'https://host.example.com/[redacted]/mcp' },
      },
    })
  })

  test('keywords of `token` and harmless arguments are shown', () => {
    const args = ['-y', 'server', '--root', '/srv/data', 'mode=fast', '--', '-x']
    const plain = shown(configOf({ auth: { token: 'none' }, mcpServers: { a: { command: 'npx', args } } }))
    expect(plain).toMatchObject({ auth: { token: 'none' }, mcpServers: { a: { args } } })
    expect(shown(configOf({}))).toMatchObject({ auth: { token: 'generated' } })
  })
})

test('B6: changes of a reload are described without any of them', () => {
  const told = compareConfigs(configOf(secretive(7)), configOf(secretive(8))).changes.join('\n')
  expect(told).not.toMatch(secretIn(7))
  expect(told).not.toMatch(secretIn(8))
  for (const key of [
    'auth.token changed',
    'auth.keys changed',
    'mcpServers.process.args changed',
    'mcpServers.process.env.PIN changed',
    'mcpServers.remote.url changed',
    'mcpServers.bearer.auth.token changed',
    'models.gpt.apiKey changed',
    'sinks.tool.arguments.password changed',
    'stores.redis.url changed (after a restart)',
    'telemetry.traces.otlp changed',
  ]) {
    expect(told.split('\n')).toContain(key)
  }
})

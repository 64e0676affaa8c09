import { expect, test } from 'vitest'
import { type Config, configSchema } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import { isRandom } from '../../core/secret-name.ts'
import { secretsOf } from './secrets.ts'

const configOf = (written: object) => configSchema.parse(written) as Config
const secretsIn = (config: Config, more?: readonly string[]) => secretsOf(config, secretSettings(config), more)
const random = 'Zk3vQ9xLm2Rt7Wp5Yb8Nc4Hd6Jf1Gs0Ka'

test('B6: the secrets of a configuration are found wherever they may be written', () => {
  const config = configOf({
    auth: { token: 'our-own-long-token' },
    mcpServers: {
      program: {
        command: 'x',
        args: [
          '--api-key=in-an-argument',
          '--token',
          'in-the-next-one',
          '--password',
          'with=equals==',
          '--file',
          'a',
          'pg://u:in-arguments@h/d',
        ],
        env: {
          GITHUB_TOKEN: 'weak-but-secret',
          DB_PASSWORD: 'hunter22',
          DATABASE_URL: 'postgres://me:pass%40word@db/x?sslkey=1',
          CONNECTION: 'Server=db;Password=in-a-connection;Timeout=30',
          SOMETHING: random,
          SOME_KEY: 'k3y-of-it',
          AWS_SECRET_ACCESS_KEY: `/${random}+x`,
        },
      },
      remote: {
        url: `https://user:in-the-url@example.com/mcp/${random}2?api_key=in-the-query&page=twelve`,
        headers: {
          Authorization: 'Bearer behind-bearer',
          'Proxy-Authorization': `Basic ${Buffer.from('me:behind-basic').toString('base64')}`,
          'X-Api-Key': 'in-a-header',
          Cookie: 'sid=in-a-cookie; theme=dark',
        },
      },
      bearer: { url: 'https://example.com/', auth: { type: 'bearer', token: 'of-a-server' } },
      oauth: {
        url: 'https://example.org/',
        auth: { type: 'oauth', clientId: 'the-client', clientSecret: 'of-a-client' },
      },
    },
    models: { local: { kind: 'openai', baseUrl: 'http://h/v1', model: 'm', apiKey: 'of-a-model' } },
    sinks: { hook: { kind: 'webhook', url: `https://h/services/${random}3`, headers: { 'X-Token': 'of-a-hook' } } },
    stores: { redis: { url: 'redis://:of-redis@h' }, postgres: { url: 'postgres://u:of-postgres@h/d' } },
  })
  expect(secretsIn(config, ['tw_generated']).sort()).toEqual(
    [
      'tw_generated',
      'our-own-long-token',
      'in-an-argument',
      'in-the-next-one',
      'with=equals==',
      'in-arguments',
      'weak-but-secret',
      'hunter22',
      'pass%40word',
      'pass@word',
      'in-a-connection',
      random,
      'k3y-of-it',
      `/${random}+x`,
      'in-the-url',
      `${random}2`,
      'in-the-query',
      'behind-bearer',
      'of-a-client',
      Buffer.from('me:behind-basic').toString('base64'),
      'behind-basic',
      'in-a-header',
      'sid=in-a-cookie; theme=dark',
      'in-a-cookie',
      'of-a-server',
      'of-a-model',
      `${random}3`,
      'of-a-hook',
      'of-redis',
      'of-postgres',
    ].sort(),
  )
})

test.each<[string, object, string[]]>([
  [
    'variables that a shell command sets',
    { command: 'sh', args: ['-c', 'cd /x && MY_TOKEN=in-a-command node x'] },
    ['in-a-command'],
  ],
  [
    'variables of a container',
    { command: 'docker', args: ['run', '--env=API_KEY=of-a-container', '-e', 'DB_URL=pg://u:of-its-url@h/d'] },
    ['of-a-container', 'of-its-url'],
  ],
  [
    'headers among arguments',
    { command: 'x', args: ['--header', `Authorization: Basic ${Buffer.from('me:behind-basic').toString('base64')}`] },
    [Buffer.from('me:behind-basic').toString('base64'), 'behind-basic'],
  ],
  [
    'headers in options',
    { command: 'x', args: ['--header=Authorization: Bearer in-an-option', '--header=X-Api-Key: in-another'] },
    ['in-an-option', 'in-another'],
  ],
  [
    'passwords that look like a header',
    { command: 'x', args: ['--password', 'my-token:horse', '--secret=my-token:house'] },
    ['my-token:horse', 'my-token:house'],
  ],
  ['arguments with a known format', { command: 'x', args: [`ghp_${'a1B2'.repeat(9)}`] }, [`ghp_${'a1B2'.repeat(9)}`]],
  ['connection strings among arguments', { command: 'x', args: ['Server=db;Password=of-a-base'] }, ['of-a-base']],
  [
    'a URL under a secret name, and its password',
    { command: 'x', args: ['--connection-string=pg://u:of-its-url@h/d'] },
    ['pg://u:of-its-url@h/d', 'of-its-url'],
  ],
  [
    'the fragment and the user name of a URL, and a password with @',
    { url: `https://${random}:with@sign@h/#access_token=of-the-hash` },
    [random, 'with@sign', 'of-the-hash'],
  ],
  ['the space in a parameter', { url: 'https://h/?api_key=two+words' }, ['two+words', 'two words']],
  [
    'the password of an issuer, but not its path',
    {
      url: 'https://h/',
      auth: { type: 'oauth', issuer: `https://u:of-an-issuer@h/${random}` },
    },
    ['of-an-issuer'],
  ],
])('B6: among the secrets of a server are %s', (_, server, texts) => {
  expect(secretsIn(configOf({ mcpServers: { server } }))).toEqual(texts)
})

test('B6: common words and paths are not secrets: hiding them would hide everything', () => {
  const env = {
    LOG_LEVEL: 'info',
    NODE_ENV: 'production',
    LANG: 'en_US.UTF-8',
    DEBUG: 'true',
    PORT: '300000',
    PATH: '/usr/local/bin:/usr/bin',
    HOME: '/home/somebody',
    TOKEN_FILE: '/run/secrets/token',
    SECRET_PATH: './secrets/keys',
    REGION: 'production-eu-west-1',
    MODEL: 'gpt-4o-mini-2024-07-18',
    BASE_URL: 'https://api.example.com/v1/things',
    ALLOWED: 'read,write,delete',
    SESSION_TIMEOUT: '30 minutes',
    DB_PASSWORD: 'postgres',
    API_KEY: 'none',
    TOKEN: '${TOKEN}',
    TZ: 'Europe/Berlin',
    PRIMARY_KEY: 'user_id',
    AUTH_METHOD: 'client-certificate',
    SESSION_STORE: 'memory',
    USER_AGENT: 'Mozilla/5.0 (X11; Linux x86_64)',
    COOKIE_CONSENT: 'accepted by all',
    TOKENIZERS_PARALLELISM: 'sometimes',
  }
  const config = configOf({
    mcpServers: {
      program: {
        command: 'npx',
        args: ['-y', '@scope/server-filesystem', './sandbox', '--port=8080', '--credentials', '/srv/keys'],
        env,
      },
      remote: {
        url: 'https://example.com/mcp?version=2',
        headers: { Accept: 'application/json', 'X-Team': 'research' },
      },
    },
  })
  expect(secretsIn(config)).toEqual([])
  expect(secretsIn(configOf({}))).toEqual([])
})

test('F11, B6: names in the configuration are not secrets: a record must say which server and agent it is about', () => {
  const named = {
    mcpServers: {
      orders: { command: 'x', env: { DB_PASSWORD: 'orders', PGPASSWORD: 'Research', OTHER_PASSWORD: 'invoices' } },
    },
    agents: { 'research.junior': {} },
    auth: { keys: [{ id: 'nightly', hash: `sha256:${'0'.repeat(64)}`, agents: ['*'] }] },
  }
  expect(secretsIn(configOf(named), ['toolway', 'native', 'nightly', 'research.junior'])).toEqual(['invoices'])
})

test('words and random strings are distinguished', () => {
  const words = [
    'internationalization',
    'production-eu-west-1',
    'ApplicationInsightsAgent',
    'server-filesystem',
    'v1.2.3',
  ]
  expect(words.filter(isRandom)).toEqual([])
  const made = [random, 'a1b2c3d4e5f6', '9f86d081884c7d659a2f', 'dQwZbXcVaKjHgFdSpOiU', 'AKIAIOSFODNN7EXAMPLEQ3X']
  expect(made.filter((value) => !isRandom(value))).toEqual([])
})

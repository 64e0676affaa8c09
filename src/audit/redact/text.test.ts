import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { createRedactor } from './redactor.ts'

const { text } = createRedactor({
  secrets: [],
  keys: ['*token*', '*password*', '*secret*', '*api_key*', '*authorization*', '*cookie*'],
})
const random = 'Zk3vQ9xLm2Rt7Wp5Yb8Nc4Hd6Jf1Gs0Ka'
const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${random}`

describe('B6: texts that hold credentials', () => {
  // Put together here, so that no scanner takes them for real ones.
  const credentials: Record<string, string> = {
    bearer: `Authorization: Bearer ${random}`,
    'bearer in lower case': `curl -H 'authorization: bearer ${random}' x`,
    basic: `Basic ${Buffer.from('me:hunter2').toString('base64')}`,
    jwt: `it is ${jwt}, see?`,
    'jwt in an address': `https://x.test/a%20${jwt}`,
    aws: `AKIA${'Q'.repeat(16)}`,
    github: `ghp_${random}`,
    'github, fine-grained': `github_pat_${random}_${random}`,
    gitlab: `glpat-${random}`,
    slack: `xoxb-1234567890-${random}`,
    'slack hook': `https://hooks.slack.com/services/T0000/B0000/${random}`,
    stripe: `sk_live_${random}`,
    openai: `sk-proj-${random}`,
    anthropic: `sk-ant-api03-${random}`,
    google: `AIza${random}`,
    npm: `npm_${random}`,
    'our token': `tw_${random}`,
    'our key': `twk_ci_${random}`,
    'a password in an address': 'postgres://me:hunter2@db/x',
    'a password without a user': 'redis://:hunter2@cache:6379',
    'a connection string': 'Server=db;User Id=me;Password=hunter2;Pwd=hunter2',
    'a storage key': `AccountName=a;AccountKey=${random}==;x=y`,
    'a query': `https://x.test/?a=1&access_token=${random}&b=2`,
    'a command': `tool --api-key ${random} --verbose`,
    'a command with quotes': `tool --password "hunter2 hunter2" --verbose`,
    'a header': `X-Api-Key: ${random}`,
    'a variable': `export MY_SECRET=${random}\nnext`,
    'a YAML file': 'db:\n  user: bob\n  password: hunter2\n  port: 5432\n',
    'a YAML file, words only': 'client:\n  - api_key: QQQQhorse # of the test system\n    name: x\n',
    'a YAML file, quoted': `a: 1\nclient_secret: 'QQQQ-horse1QQQQ'\ntoken: "hunter2"\npassword: "hunter2 and more"\n`,
    'a YAML file in a diff': '@@ -1,2 +1,2 @@\n+  secret: hunter2\n x: 1\n',
    'a YAML file, escaped and cut': '"db:\\n  password: hunter2\\n  x: 1',
    'settings with blanks': `[db]\nuser = me\npassword = 'hunter2'\napi_token = hunter2\ndb.password = hunter2`,
    'properties with a colon': 'db.password : hunter2',
    'an assignment in code': `const password = "hunter2 hunter2"; let apiKey = 'QQQQ${random}'`,
    'a log line': 'connecting: user: bob password: hunter2 (attempt 2), api_key: hunter2-of-bob',
    'an XML element': '<db><user>me</user><password>hunter2</password></db>',
    'an XML element with attributes': '<wsse:Password Type="text">hunter2</wsse:Password>',
    'an XML element with CDATA': '<secret><![CDATA[hunter2]]></secret>',
    'another scheme': 'GET / HTTP/1.1\r\nAuthorization: Custom hunter2\r\nAccept: */*',
    'another scheme in a command': 'curl -H "Authorization: SharedKey me:hunter2" x',
    'a scheme with parameters':
      'Authorization: AWS4-HMAC-SHA256 Credential=QQQQ/20260101, SignedHeaders=host, Signature=hunter2',
    'no scheme': '> authorization: hunter2',
    cookies: 'Cookie: theme=dark; sid=hunter2',
    'JSON that is cut': `{"a": 1, "password": "hunter2", "b": {`,
    'JSON that is cut, with spaces': `{"a": 1, "password" : "hunter2", "b": {`,
    'JSON that is cut, over several lines': `{"a": 1, "password"\n  :\n  "hunter2", "b": {`,
    'JSON that is cut, escaped': `{\\"password\\": \\"hunter2\\", \\"b`,
    'JSON that is cut, with an object': `x {"secret": {"y": "hunter2"`,
    'a private key': `-----BEGIN RSA PRIVATE KEY-----\n${random}\n-----END RSA PRIVATE KEY----- after`,
    'a private key that is cut': `-----BEGIN PRIVATE KEY-----\n${random}\n${random}`,
  }

  test.each(Object.entries(credentials))('%s', (_, given) => {
    const shown = text(given)
    expect(shown).toContain('[redacted]')
    expect(shown).not.toMatch(/hunter2|Zk3vQ9|QQQQ|aHVudGVy|bWU6/)
    expect(text(shown)).toBe(shown)
  })

  test('the text around a credential stays', () => {
    expect(text(`a Bearer ${random} b`)).toBe('a Bearer [redacted] b')
    expect(text('postgres://me:hunter2@db/x')).toBe('postgres://me:[redacted]@db/x')
    expect(text(`?a=1&token=${random}&b=2`)).toBe('?a=1&token=[redacted]&b=2')
    expect(text('Server=db;Password=hunter2;Port=1')).toBe('Server=db;Password=[redacted];Port=1')
    expect(text(credentials['a private key'] as string)).toBe('[redacted] after')
    expect(text('a:\n  password: hunter2 # of a\n  port: 1')).toBe('a:\n  password: [redacted] # of a\n  port: 1')
    expect(text("password = 'hunter2' # of a")).toBe("password = '[redacted]' # of a")
    expect(text('<a><password>hunter2</password></a>')).toBe('<a><password>[redacted]</password></a>')
    expect(text('Authorization: Digest hunter2\nA: b')).toBe('Authorization: Digest [redacted]\nA: b')
    expect(text('Cookie: a=hunter2\nA: b')).toBe('Cookie: [redacted]\nA: b')
    expect(text('run --token abc --out x')).toBe('run --token [redacted] --out x')
  })

  const honest = [
    'The bearer responsibilities of a basic understanding: token by token.',
    'Basic JavaScriptDevelopment for beginners',
    'a task-management-system-with-many-words and sk-learn-like-estimators-everywhere',
    'https://example.com:8080/a/b?c=d&e=f#g',
    'https://example.com/@user/post:1 and mail me@example.com',
    'ssh://git@github.com/x/y.git and git@github.com:x/y.git',
    "SELECT name, age FROM people WHERE age >= 21 AND name != 'x' ORDER BY age",
    'const x = a === b ? c : { d: e, "f": g }; // => ok',
    'token: a unit of text. password: required',
    '2026-01-02T03:04:05Z level=info took=12ms size=4KiB',
    '# Heading\n\n- one\n- two: three\n\n```ts\nimport { x } from "./y.ts"\n```',
    '550e8400-e29b-41d4-a716-446655440000',
    'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'token: string\nsecret: required\npassword: null\nmax_tokens: 4096\ntemperature: 1',
    'password: ${DB_PASSWORD}\napi_key: $API_KEY\ntoken: <your token>\nsecret: {{ vault.secret }}\ntoken: …',
    'tokenType: jwt\npassword_file: /run/secrets/db\nsecret: ./files/secret\nsecret_name: database',
    'const token = createToken(x)\npassword = ask()\npassword: text("x y")\nthis.token = token;\n  token: options.token,\n  token: config.token\nsecret: SecretStr',
    "log('token: ' + token); prompt('Password: ', x); f({ secret: 'digest', token: '' }); token.kind = 'comma'",
    'if (password == x || token === y || secret != z || token <= 3) token += 1',
    'Authorization: who may do what.\nCookie: a small text that a browser keeps',
    'curl -H "Authorization: Bearer $TOKEN" x\nAuthorization: Bearer <token>',
    '<token>, <secret> and <p>password</p> are </b>',
    'npm_config_registry npm_lifecycle_event tw_ hf_transfer AKIA pk_test',
  ]
  test.each(honest)('no credential: %s', (given) => {
    expect(text(given)).toBe(given)
  })

  test('hostile texts take linear time', async () => {
    const parts = [
      'eyJ',
      'eyJaaaaaaaaaa.',
      '://a:',
      '://',
      'Bearer ',
      'bearer+',
      'basic+',
      '-----BEGIN PRIVATE KEY',
      '--token ',
      '-----BEGIN PRIVATE KEY-----',
      'password=',
      '"token":',
      '"token":"',
      'token: ',
      'token: "a',
      `token: 'a token: "a `,
      'password: a # ',
      'token =',
      'cookie: a=',
      '<token>',
      '<token a',
      '</',
      '\\"',
      'sk-',
      'SG.aaaaaaaaaaaaaaaaaaaa',
      '=',
      '%2',
      '\\u00',
    ]
    const { text, known } = createRedactor({ secrets: ['aaaaaaaaaaaaaaaaaab', 'a b"c%d'], keys: ['*token*'] })
    for (const part of parts) {
      const given = part.repeat(Math.ceil(8192 / part.length)).slice(0, 8192)
      await expectCpuBelow(30, () => [text(given), known(given)], part)
    }
  })

  test.each(['authorization: Basic ', 'password: #', 'password: a # ', ' <', 'cookie: a=', 'token: a '])(
    'a long text of %j, as in a capture, takes linear time',
    (part) => {
      const { whole } = createRedactor({ secrets: [], keys: ['*token*'] })
      const long = part.repeat(Math.ceil(262_144 / part.length))
      return expectCpuBelow(1_000, () => [whole({ text: `password: "x${long}` }), whole({ text: long })])
    },
  )

  test('the long name of an argument takes linear time', async () => {
    const { value } = createRedactor({ secrets: [], keys: ['*token*'] })
    await expectCpuBelow(500, () =>
      value({ [`token${'max_'.repeat(65_536)}`]: 'x', [`${'token_per_a'.repeat(16_384)}!`]: 'y' }),
    )
  })
})

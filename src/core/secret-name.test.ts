import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../tests/fixtures/cpu-time.ts'
import { isSecretName } from './secret-name.ts'

test.each([
  'MAX_TOKENS',
  'max_schema_tokens',
  'maxSchemaTokens',
  'LLM_MAX_OUTPUT_TOKENS',
  'tokens_used',
  'token_budget',
])('F11: %s counts tokens and is not a secret', (name) => {
  expect(isSecretName(name)).toBe(false)
})

test.each(['TOKEN', 'GITHUB_TOKEN', 'refresh_tokens', 'MAXIMA_ACCESS_TOKEN_VALUE', 'api_key', 'DB_PASSWORD'])(
  'F11: %s is a secret',
  (name) => {
    expect(isSecretName(name)).toBe(true)
  },
)

test.each([
  'client_keyboard',
  'clientKeyboard',
  'api_keyword',
  'cookie_consent',
  'cookieConsentVersion',
  'COOKIES_ENABLED',
  'cookie_domain',
  'TOKENIZERS_PARALLELISM',
  'tokenizer_model',
  'passwordless',
  'secretary',
  'TOKEN_ENDPOINT',
  'TOKEN_FILE',
  'tokenfile',
  'secretsDir',
  'credentialsFilename',
  'TOKEN_BASEURL',
])('F11: %s is not a secret', (name) => {
  expect(isSecretName(name)).toBe(false)
})

test.each([
  'client_key',
  'clientKey',
  'apikeys',
  'cookie',
  'session_cookie',
  'SESSION_COOKIES',
  'cookieValue',
  'cookie_secure_token',
  'PGPASSWORD',
  'dbpasswd',
  'Passwort',
  'passwordHash',
  'secretkey',
  'secretkeybase',
  'APIKEYPROD',
  'tokenv2',
  'cookiejar',
  'PASSWORDDB',
  'passwordconfirmation',
  'privatekeycontents',
  'PRIVATEKEYDER',
  'secretphrase',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_ACCESS_KEY_ID',
  'TOKEN2',
  'authToken1',
  'connectionString',
  'X-Authorization',
  'db.password',
  // Their last words end like words for a property of a secret: `min`, `port`, `file`.
  'TOKEN_ADMIN',
  'API_KEY_SUPPORT',
  'PASSWORD_PROFILE',
])('F11: %s is a secret, by its words', (name) => {
  expect(isSecretName(name)).toBe(true)
})

test('F11: long names are examined in linear time', () =>
  expectCpuBelow(10_000, () => {
    for (const part of ['token', 'file', 'A', 'aB', 'cookie', 'pass', '_']) isSecretName(part.repeat(200_000))
  }))

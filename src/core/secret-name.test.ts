import { expect, test } from 'vitest'
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

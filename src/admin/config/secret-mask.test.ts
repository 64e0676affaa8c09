import { expect, test } from 'vitest'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { contentOf } from '../../config/edit/edit-text.ts'
import { SecretMask } from './secret-mask.ts'

const mask = () => new SecretMask(createRedactor({ secrets: ['known-secret-9'], keys: ['*token*', '*password*'] }), 'k')

const yaml = `# password: hunter2
auth:
  token: my-own-token        # not generated
  keys:
    - { id: a, hash: "sha256:${'0'.repeat(64)}", agents: ["*"] }
mcpServers:
  a:
    url: "https://me:pass-w0rd@x.test/mcp?key=1"
    headers: { Authorization: "Bearer s3cr\\"et", X-Ok: "\${file:~/x}" }
  b:
    command: run
    args: [--api-key, k-123, --verbose]
    env:
      PASSWORD: |
        two
        lines
      ACCESS_TOKEN: 1234567
      LOG_LEVEL: debug
      HOME_TOKEN: \${HOME_TOKEN}
stores: { redis: { url: "redis://:pw@host:1" } }
description: contains known-secret-9
`
const secrets = /hunter2|my-own-token|0{64}|pass-w0rd|key=1|s3cr|k-123|two|1234567|:pw@|known-secret-9/

test('V9: no secret of a file is shown in a difference', () => {
  const one = mask()
  const shown = one.maskText('toolway.yaml', yaml) ?? ''
  expect(shown).not.toMatch(secrets)
  expect(shown).toContain('LOG_LEVEL: debug')
  expect(shown).toContain('X-Ok: "${file:~/x}"')
  expect(shown).toContain('HOME_TOKEN: ${HOME_TOKEN}')
  expect(shown).toContain('--verbose')
})

test('V9: the same holds for plain values and for JSON with comments', () => {
  const one = mask()
  const content = contentOf('toolway.yaml', yaml)
  const shown = one.maskValues(content)
  expect(JSON.stringify(shown)).not.toMatch(secrets)
  expect(one.restoreValues(shown)).toEqual(content)
  const json = `{ // token: my-own-token\n${JSON.stringify(content, undefined, 2).slice(1)}`
  const text = one.maskText('toolway.json', json) ?? ''
  expect(text).not.toMatch(secrets)
})

test('V9: secrets in block comments of JSON are hidden', () => {
  const json = `{ /* old: "API_TOKEN": "my-own-token" */
  "a": "b /* token: kept */", /*
    "password":
      "hunter2" */
  /* harmless */
}
`
  const one = mask()
  const shown = one.maskText('toolway.json', json) ?? ''
  expect(shown).not.toMatch(secrets)
  for (const part of ['/* token: kept */', '/* harmless */']) expect(shown).toContain(part)
  expect(mask().maskText('toolway.json', shown)).toBe(shown)
})

test('V9: a placeholder depends on the secret only, and an unknown one is refused', () => {
  const [, id] = /token: (<secret \w+>)/.exec(mask().maskText('a.yaml', yaml) ?? '') ?? []
  expect(mask().maskText('a.yaml', 'auth: { token: my-own-token }\n')).toContain(id)
  expect(() => mask().restoreValues(['<secret 00000000>'])).toThrow('There is no')
  expect(mask().maskText('a.yaml', 'a: [')).toBeUndefined()
  expect(mask().maskText('a.toml', 'a = ')).toBeUndefined()
})

test('V9: no secret of a TOML file is shown in a difference', () => {
  const toml = `# password: hunter2
auth.token = 'my-own-token'# token: my-own-token
description = "contains known-secret-9"
stores = { redis = { url = "redis://:pw@host:1" } }
[[auth.keys]]
id = "a"
hash = "sha256:${'0'.repeat(64)}"
[mcpServers.a]
url = "https://me:pass-w0rd@x.test/mcp?key=1#token=hunter2"
headers.Authorization = "Bearer s3cr\\"et"
[mcpServers."b"]
args = [
  "--api-key", # the key
  "k-123", "--verbose",
]
[mcpServers.b.env]
PASSWORD = """
two
lines"""
ACCESS_TOKEN = 1234567
LOG_LEVEL = "debug"
`
  const one = mask()
  const shown = one.maskText('toolway.toml', toml) ?? ''
  expect(shown).not.toMatch(secrets)
  for (const part of ['# the key', '--verbose', 'LOG_LEVEL = "debug"']) expect(shown).toContain(part)
})

test('V9: secrets in defaults of references and beside references are hidden', () => {
  const text = `# apiKey: \${KEY:-hunter2}
models:
  a: { apiKey: "\${OPENAI_API_KEY:-sk-live-hunter2}" }
mcpServers:
  a:
    url: "https://\${HOST:-me:hunter2@x.test}/mcp"
    headers: { Authorization: "Bearer \${T:-hunter2}", X-Auth: "Basic \${T}" }
    auth: { clientSecret: "\${P}hunter2" }
  b:
    command: run
    args: [--api-key, "\${K:-hunter2}", "--token=\${K}hunter2", "--password=\${K}", "\${DIR:-/srv}"]
    env: { PASSWORD: "$\${hunter2}", DB_TOKEN: "\${env:T:-hunter2}", BIN: "\${HOME}/bin", LOG: "\${LOG:-debug}" }
stores: { redis: { url: "redis://:\${PW}@host:1" } }
auth: { token: "\${TOKEN}" } # token: \${TOKEN}
`
  const one = mask()
  const shown = one.maskText('toolway.yaml', text) ?? ''
  expect(shown).not.toContain('hunter2')
  const harmless = ['Basic ${T}', '--password=${K}', '${DIR:-/srv}', '${HOME}/bin', '${LOG:-debug}', ':${PW}@host:1']
  for (const part of [...harmless, 'auth: { token: "${TOKEN}" } # token: ${TOKEN}']) expect(shown).toContain(part)
  const content = contentOf('toolway.yaml', text)
  const values = one.maskValues(content)
  expect(JSON.stringify(values)).not.toContain('hunter2')
  expect(one.restoreValues(values)).toEqual(content)
})

test('V9: nothing is shown of a command with secrets besides those that are found in it', () => {
  const args = ['-c', 'TOKEN=abc run known-secret-9', '-c', 'cd x && TOKEN=abc run']
  const shown = JSON.stringify(mask().maskValues({ mcpServers: { a: { command: 'sh', args } } }))
  expect(shown).not.toMatch(/abc|known-secret-9/)
  expect(shown).toMatch(/"cd x && TOKEN=<secret [0-9a-f]{8}> run"/)
})

test('V9: the path after an option for a secret is hidden, and a harmless option is shown', () => {
  const args = ['--token', '/pa55', '--cookie-consent', 'all']
  const shown = mask().maskValues({ mcpServers: { a: { command: 'x', args } } })
  expect(JSON.stringify(shown)).not.toContain('pa55')
  expect(shown).toMatchObject({
    mcpServers: { a: { args: ['--token', expect.any(String), '--cookie-consent', 'all'] } },
  })
})

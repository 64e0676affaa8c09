import { expect, test } from 'vitest'
import { findingOf } from './probed-server.fixture.ts'

const https = { url: 'https://user:pass@mcp.example.com/v1?key=secret' }
const http = { url: 'http://mcp.example.com/v1' }

test.each([
  ['ENOTFOUND', 'unknown host name'],
  ['ECONNREFUSED', 'nothing is listening there'],
  ['UND_ERR_CONNECT_TIMEOUT', 'the host does not respond'],
])('B11: a server that cannot be reached: %s', async (code, why) => {
  expect(await findingOf(https, { failure: { code } })).toMatchObject({
    status: 'problem',
    message: `mcp.example.com: ${why} (${code})`,
    remedy: 'curl -sv https://mcp.example.com/v1   # then start it, or correct mcpServers.it.url',
  })
})

test('B11: a failure of a proxy differs from one of the server', async () => {
  const message =
    'Could not reach it: the proxy http://proxy:3128 requires a user name and password (HTTP 407). Put them there.'
  expect(await findingOf(https, { failure: { code: 'PROXY', message } })).toMatchObject({
    status: 'problem',
    message: message.slice(0, -1),
    remedy: expect.stringMatching(/^curl -sv https:\/\/mcp\.example\.com\/v1 .*proxy/),
  })
})

test.each([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'not trusted here', 'NODE_EXTRA_CA_CERTS'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'not trusted here', 'NODE_EXTRA_CA_CERTS'],
  ['CERT_HAS_EXPIRED', 'expired', 'expire date'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'different host name', 'mcpServers.it.url'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'does not speak TLS', 'mcpServers.it.url: http://mcp.example.com/v1'],
])('B11: TLS: %s', async (code, message, remedy) => {
  const finding = await findingOf(https, { failure: { code } })
  expect(finding.message).toContain(message)
  expect(finding.remedy).toContain(remedy)
})

test('B11: a connection closed without a response suggests the other of http and https', async () => {
  const plain = await findingOf(http, { failure: { code: 'UND_ERR_SOCKET' } })
  expect(plain).toMatchObject({ remedy: 'mcpServers.it.url: https://mcp.example.com/v1' })
  const encrypted = await findingOf(https, { failure: { code: 'ECONNRESET' } })
  expect(encrypted).toMatchObject({ remedy: 'mcpServers.it.url: http://mcp.example.com/v1' })
})

test('B11: a missing credential, a rejected one and OAuth are distinguished', async () => {
  const failure = { status: 401 }
  const missing = await findingOf(http, { failure })
  expect(missing.message).toMatch(/credential \(HTTP 401\).* none is configured/)
  expect(missing.remedy).toContain('mcpServers.it.auth: { type: bearer')
  const bearer = { ...http, auth: { type: 'bearer', token: 'a-token' } }
  const header = { ...http, headers: { 'X-Api-Key': 'a-key' } }
  for (const config of [bearer, header]) {
    expect((await findingOf(config, { failure: { status: 403 } })).message).toMatch(/our credential \(HTTP 403\)/)
  }
  const signedIn = { url: 'https://mcp.example.com/v1', auth: { type: 'oauth' } }
  const oauth = await findingOf(signedIn, { failure })
  expect(oauth).toMatchObject({ message: expect.stringContaining('scopes'), remedy: 'toolway auth it' })
  const without = { failure: { message: '', signIn: 'it needs a sign-in' } }
  expect(await findingOf(signedIn, without)).toMatchObject({ remedy: 'toolway auth it' })
  const client = { grant: 'client_credentials', clientId: 'toolway', clientSecret: 'a-secret' }
  const itself = { ...signedIn, auth: { type: 'oauth', ...client } }
  for (const found of [without, { failure }])
    expect(await findingOf(itself, found)).toMatchObject({ remedy: 'check mcpServers.it.auth' })
})

test('B11: a redirect is reported with its target', async () => {
  const message = 'it redirects to https://new.example.com, and redirects are not followed. Put the final address …'
  const finding = await findingOf(http, { failure: { status: 308, message } })
  expect(finding.message).toBe('it redirects to https://new.example.com (HTTP 308)')
  expect(finding.remedy).toContain("curl -sL -o /dev/null -w '%{url_effective}\\n' http://mcp.example.com/v1")
})

test.each([
  [{ status: 404 }, 'HTTP 404'],
  [{ message: 'it responded with text/html instead of a message. Check mcpServers.it.url.' }, 'not an MCP message'],
])('B11: a wrong address: %j', async (failure, why) => {
  const finding = await findingOf(http, { failure })
  expect(finding.message).toMatch(/^there is no MCP server at http:\/\/mcp\.example\.com\/v1/)
  expect(finding.message).toContain(why)
  expect(finding.remedy).toBe('mcpServers.it.url: http://mcp.example.com/mcp   # or http://mcp.example.com/sse')
})

test('B11: timeouts and all other failures', async () => {
  const silence = await findingOf(http, { failure: { timedOut: true } })
  expect(silence.message).toBe('it did not answer within 30 s (--timeout)')
  const other = await findingOf(http, { failure: { status: 500, message: 'it failed (HTTP 500). See its log.' } })
  expect(other.message).toBe('it failed (HTTP 500). See its log')
})

test('B11: remedies contain no secret parts of a URL', async () => {
  for (const failure of [{ code: 'ENOTFOUND' }, { status: 302 }, { status: 404 }, { code: 'ECONNRESET' }, {}]) {
    expect(JSON.stringify(await findingOf(https, { failure }))).not.toMatch(/pass|secret/)
  }
})

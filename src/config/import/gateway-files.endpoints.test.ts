import { expect, test } from 'vitest'
import { brief, project } from '../project.fixture.ts'

const endpoints = `
executor:
  workers: 4
mcp_endpoints:
  - name: tickets
    endpoint: https://tickets.example.com
    auth_token: \${TICKETS_TOKEN}
    read_only: true
  - name: wiki
    endpoint: http://127.0.0.1:8080/api/mcp
    auth_token: ""
    read_only: false
    enabled: true
  - name: old
    endpoint: \${OLD_ENDPOINT}
    auth_token: \${OLD_TOKEN}
    enabled: false
`

test('J2: a file with mcp_endpoints becomes servers that are reached over HTTP', async () => {
  const { load, at } = await project({ 'executor.yaml': endpoints })
  const { config, files, notes, warnings } = await load({ paths: ['executor.yaml'], env: { TICKETS_TOKEN: 'abc' } })
  expect(files).toEqual([{ path: at('executor.yaml'), dialect: 'mcp-endpoints' }])
  expect(notes).toEqual([
    `${at('executor.yaml')}: read as an mcp_endpoints file: 3 servers`,
    expect.stringMatching(/tickets .*trustAnnotations: true/),
  ])
  expect(warnings).toEqual([expect.stringContaining(`${at('executor.yaml')}: executor ignored: `)])
  expect(config.mcpServers).toMatchObject({
    tickets: {
      transport: 'http',
      url: 'https://tickets.example.com/mcp',
      auth: { type: 'bearer', token: 'abc' },
      readOnly: true,
      trustAnnotations: true,
      disabled: false,
    },
    wiki: {
      url: 'http://127.0.0.1:8080/api/mcp',
      auth: undefined,
      readOnly: false,
      trustAnnotations: false,
      disabled: false,
    },
    old: { disabled: true },
  })
})

test.each([
  ['http://x:1', 'http://x:1/mcp'],
  ['http://x:1/', 'http://x:1/mcp'],
  ['http://x/mcp', 'http://x/mcp'],
  ['http://x/v1/', 'http://x/v1/'],
  ['http://x?a=1', 'http://x?a=1'],
])('the endpoint %s is %s, also when a variable holds it', async (endpoint, url) => {
  const { load } = await project({
    'toolway.yaml': `mcp_endpoints:\n  - { name: a, endpoint: "${endpoint}" }\n  - { name: b, endpoint: "\${E}", enabled: "\${ON}" }\n`,
  })
  const { mcpServers } = (await load({ env: { E: endpoint, ON: 'true' } })).config
  expect(mcpServers.a).toMatchObject({ url })
  expect(mcpServers.b).toMatchObject({ url, disabled: false })
})

test('J2: read_tools lists the reads of a server', async () => {
  const text = 'mcp_endpoints: [{ name: a, endpoint: "http://x", read_only: true, read_tools: ["get_*"] }]'
  const { config, notes } = await (await project({ 'executor.yaml': text })).load({ paths: ['executor.yaml'] })
  expect(config.mcpServers.a).toMatchObject({ readOnly: true, readTools: ['get_*'], trustAnnotations: true })
  expect(notes.join()).toContain('read_tools')
})

test('mistakes are refused at their line and name the key that was written', async () => {
  const { problems } = await project({
    'toolway.yaml': `mcp_endpoints:
  - name: a
    endpont: http://x
  - endpoint: http://x
  - name: b
    endpoint: x
    read_onli: true
  - name: c
    endpoint: http://x
    auth_token: \${UNSET}
`,
  })
  expect(brief(await problems())).toEqual([
    '3:5 mcp_endpoints[0].endpont: unknown key `endpont`; did you mean `endpoint`?',
    '4:5 mcp_endpoints[1]: expected a server with a name',
    '6:5 mcpServers.b.url: expected a URL that starts with http:// or https://, found "x" (written as mcp_endpoints[2].endpoint)',
    '7:5 mcp_endpoints[2].read_onli: unknown key `read_onli`; did you mean `read_only`?',
    '10:17 mcpServers.c.auth.token: the variable UNSET is not set; set it, or write ${UNSET:-default} (written as mcp_endpoints[3].auth_token)',
  ])
})

test('endpoints that are not a list are refused', async () => {
  const { problems } = await project({ 'toolway.yaml': 'mcp_endpoints: { a: 1 }' })
  expect(brief(await problems())).toEqual(['1:16 mcp_endpoints: expected a list of servers'])
})

test('J2: an endpoint that is written as url gets the same path', async () => {
  const text = 'mcp_endpoints: [{ name: a, url: "http://x.example" }, { name: b, url: "http://x.example/api" }]'
  const { config } = await (await project({ 'executor.yaml': text })).load({ paths: ['executor.yaml'] })
  expect(config.mcpServers).toMatchObject({ a: { url: 'http://x.example/mcp' }, b: { url: 'http://x.example/api' } })
})

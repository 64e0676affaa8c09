import { PassThrough } from 'node:stream'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toolway as runToolway } from '../../../src/cli/kit.fixture.ts'
import { createLineReader } from '../../../src/wire/bytes.ts'
import { encodeHeaderValue } from '../../../src/wire/param-headers.ts'
import { nameField } from '../../../src/wire/revisions.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { goodHeaders, messageOf, rawRequest, rawSession } from '../../fixtures/raw-http.ts'
import { runs } from '../../fixtures/runs.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { startVerbatim } from '../../fixtures/verbatim-server.ts'
import { asking, originOf } from '../admin/people.ts'

const program = serverProgram('verbatim')
const open = new AsyncDisposableStack()
const servers = ['old-http', 'new-http', 'old-stdio', 'new-stdio']
const frontEnds = ['legacy HTTP', 'modern HTTP', 'legacy stdio', 'modern stdio'] as const

/** Sends a request whose params are written by hand, and gives the message that answers it. */
type Send = (method: string, params: string) => Promise<string>

const senders = new Map<string, Send>()
let toolway: LocalToolway

const meta =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"example.com/n":9007199254740993'
const enveloped = (params: string) => `${params.slice(0, -1)},"_meta":{${meta}}}`
const rpc = (id: number, method: string, params: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

/** A client at the stdio frontEnd; both eras can share it. */
async function lineSender(): Promise<(method: string, params: string) => Promise<string>> {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const waiting = new Map<number, (line: string) => void>()
  let id = 0
  const line = (bytes: Buffer) => waiting.get((JSON.parse(String(bytes)) as { id: number }).id)?.(String(bytes))
  output.on('data', createLineReader({ maxLength: 1 << 26, line, tooLong() {} }).push)
  const served = toolway.gateway.stdio(input, output)
  open.defer(async () => {
    input.end()
    await served
  })
  return (method, params) => {
    input.write(`${rpc(++id, method, params)}\n`)
    return new Promise((resolve) => waiting.set(id, resolve))
  }
}

beforeAll(async () => {
  const [older, newer] = [open.use(await startVerbatim('legacy')), open.use(await startVerbatim('modern'))]
  toolway = open.use(
    await startToolway({
      mcpServers: {
        'old-http': { url: older.url },
        'new-http': { url: newer.url },
        'old-stdio': { command: process.execPath, args: [program, 'legacy'] },
        'new-stdio': { command: process.execPath, args: [program, 'modern'] },
      },
      audit: { arguments: 'full' },
      cache: { enabled: true, tools: ['new-http.hear'] },
      discovery: { listDeadline: '20s' },
    }),
  )
  const session = await rawSession(toolway)
  let id = 100
  const post = async (headers: Record<string, string>, method: string, params: string) =>
    messageOf((await rawRequest(toolway.url, { headers, body: rpc(++id, method, params) })).text)
  senders.set('legacy HTTP', (method, params) => post({ ...session.headers }, method, params))
  senders.set('modern HTTP', (method, params) => {
    const name = (JSON.parse(params) as Record<string, unknown>)[nameField(method) ?? '']
    const said = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method }
    const named: Record<string, string> = typeof name === 'string' ? { 'mcp-name': encodeHeaderValue(name) } : {}
    return post({ ...goodHeaders(toolway), ...said, ...named }, method, enveloped(params))
  })
  const inSession = await lineSender()
  const hello = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}'
  await inSession('initialize', hello)
  senders.set('legacy stdio', inSession)
  const stateless = await lineSender()
  senders.set('modern stdio', (method, params) => stateless(method, enveloped(params)))
})

afterAll(() => open.disposeAsync())

/** Servers are started by name, as from a shell. */
const surroundings = () => ({ cwd: toolway.folder, env: process.env })

/** What a server has received, as it tells in its answer. */
function heard(answer: string): string {
  const { result } = JSON.parse(answer)
  const text = result?.content?.[0].text ?? result?.messages?.[0].content.text ?? result?.completion?.values[0]
  return text ?? expect.unreachable(answer)
}

const odd =
  '{"id":1326954198812345679, "f":1.0,"e":1e2,"z":-0,"d":0.1000000000000000055,"s":"\\u0061\\/é","n":[9007199254740993 ]}'

describe.each(frontEnds)('V5: through the frontEnd for %s', (frontEnd) => {
  const send: Send = (method, params) => (senders.get(frontEnd) as Send)(method, params)

  test.each(servers)('arguments of tools, prompts and completions reach %s byte by byte', async (server) => {
    const call = await send('tools/call', `{"name":"${server}__hear","arguments": ${odd} }`)
    expect(heard(call)).toContain(`"arguments":${odd}`)
    const prompt = await send('prompts/get', `{"arguments":{"n":"\\u0061"},"name":"${server}__hear"}`)
    expect(heard(prompt)).toContain('"arguments":{"n":"\\u0061"}')
    const ref = `{"type":"ref/prompt","name":"${server}__hear"}`
    const completion = await send(
      'completion/complete',
      `{"ref":${ref},"argument":{"name":"n", "value":"\\u0062"},"context":{"arguments":{"m" :"1"}}}`,
    )
    expect(heard(completion)).toContain('"argument":{"name":"n", "value":"\\u0062"},"context":{"arguments":{"m" :"1"}}')
  })

  test('so do those of calls inside meta-tools', async () => {
    const one = `{"server":"old-stdio","tool":"hear","args": ${odd}}`
    expect(heard(await send('tools/call', `{"name":"execute_tool","arguments":${one}}`))).toContain(
      `"arguments":${odd}`,
    )
    const text = JSON.stringify(odd)
    const asText = `{"server":"old-stdio","tool":"hear","args":${text}}`
    expect(heard(await send('tools/call', `{"name":"execute_tool","arguments":${asText}}`))).toContain(
      `"arguments":${odd}`,
    )
    const several = await send('tools/call', `{"name":"execute_tools","arguments":{"calls":[${one} ,${one}]}}`)
    const { results } = JSON.parse(several).result.structuredContent
    for (const { result } of results) expect(result.content[0].text).toContain(`"arguments":${odd}`)
  })

  test('line breaks between tokens become spaces, and names that occur twice are refused', async () => {
    if (frontEnd.endsWith('HTTP')) {
      const call = await send('tools/call', '{"name":"old-stdio__hear",\r\n"arguments":{\n"a":1.0\n}\n}')
      expect(heard(call)).toContain('"arguments":{ "a":1.0 }')
    }
    const twice = JSON.stringify('{"a":1,"a":2}')
    const args = `{"server":"old-stdio","tool":"hear","args":${twice}}`
    expect(await send('tools/call', `{"name":"execute_tool","arguments":${args}}`)).toContain('INVALID_ARGUMENTS')
  })
})

test('V5: whatever numbers are in the arguments, every server gets their digits', async () => {
  const number = fc
    .tuple(
      fc.bigInt(),
      fc.option(fc.nat(), { nil: undefined }),
      fc.option(fc.integer({ min: -9, max: 9 }), { nil: undefined }),
    )
    .map(
      ([whole, fraction, power]) =>
        `${whole}${fraction === undefined ? '' : `.${fraction}`}${power === undefined ? '' : `E${power}`}`,
    )
  const args = fc.array(number, { maxLength: 5 }).map((numbers) => `{"n":[${numbers.join(' , ')}]}`)
  const carried = fc.asyncProperty(
    args,
    fc.constantFrom(...frontEnds),
    fc.constantFrom(...servers),
    async (text, frontEnd, server) => {
      const answer = await (senders.get(frontEnd) as Send)(
        'tools/call',
        `{"name":"${server}__hear","arguments":${text}}`,
      )
      expect(heard(answer)).toContain(`"arguments":${text}`)
    },
  )
  await fc.assert(carried, runs(20, 300))
})

test('V5: two numbers that round to the same one have separate results in the cache and separate arguments in the audit log', async () => {
  const send = senders.get('legacy HTTP') as Send
  const ask = (n: string) => send('tools/call', `{"name":"new-http__hear","arguments":{"cached":${n}}}`)
  expect(heard(await ask('9007199254740992'))).toContain('{"cached":9007199254740992}')
  expect(heard(await ask('9007199254740993'))).toContain('{"cached":9007199254740993}')
  const again = await ask('9007199254740993')
  expect(heard(again)).toContain('{"cached":9007199254740993}')
  const { code, stdout } = await runToolway(
    ['audit', 'query', '--tool', 'new-http.hear', '--json', '--config', toolway.configFile],
    surroundings(),
  )
  expect(code).toBe(0)
  expect(stdout).toContain('9007199254740993')
})

test('V5: `toolway call` sends what it is given', async () => {
  const call = (...words: string[]) =>
    runToolway(['call', 'old-stdio.hear', ...words, '--config', toolway.configFile], surroundings())
  expect((await call('--args', odd)).stdout).toContain(`"arguments":${odd}`)
  expect((await call('n:=1326954198812345679', '--args', '{"m":9007199254740993}')).stdout).toContain(
    '"arguments":{"m":9007199254740993,"n":1326954198812345679}',
  )
})

test('V5: the admin API returns the numbers of a result as the server wrote them', async () => {
  const result = '{"content":[],"structuredContent":{"n":[12345678901234567890,1e400]}}'
  const ask = asking(originOf(toolway), toolway.token)
  const { text } = await ask('tools/old-stdio__say/call', { body: { arguments: { result } } })
  expect(text).toContain('"n":[12345678901234567890,1e400]')
})

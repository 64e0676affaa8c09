import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeHeaderValue } from '../../../src/wire/param-headers.ts'
import { nameField } from '../../../src/wire/revisions.ts'
import { anyCharacter } from '../../fixtures/any-character.ts'
import { able, connectCaller } from '../../fixtures/callers.ts'
import type { Fetch } from '../../fixtures/clients.ts'
import { buildGoServer, startGoServer } from '../../fixtures/go-server.ts'
import { goodHeaders, messageOf, rawRequest, rawSession } from '../../fixtures/raw-http.ts'
import { runs } from '../../fixtures/runs.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { withPart } from '../../fixtures/with-part.ts'

type Fields = Record<string, unknown>

/** Sends params that are written by hand, and gives the answer whatever its status. */
type Send = (method: string, params: string) => Promise<{ result?: Fields; error?: { code: number; message: string } }>

const servers = ['old-stdio', 'new-stdio', 'old-http', 'new-http']
const eras = ['legacy', 'modern'] as const
const open = new AsyncDisposableStack()
const senders = new Map<string, Send>()
let toolway: LocalToolway

/** Names that Go, or a parser less strict than Go, reads as this one. */
const spellings = (name: string): string[] => {
  const capital = `${name[0]?.toUpperCase()}${name.slice(1)}`
  return [
    capital,
    name.toUpperCase(),
    `${name} `,
    `\ufeff${name}`,
    name.replace('s', 'ſ').replace('k', '\u212a').replace('n', 'ｎ').replace('u', 'Ｕ'),
  ]
}

/** A name with some of its letters replaced by others that fold to them. */
const respelt = (name: string) =>
  fc
    .tuple(...[...name].map((letter) => fc.constantFrom(letter, letter.toUpperCase(), ...(lookalikes[letter] ?? []))))
    .map((letters) => letters.join(''))

const lookalikes: Readonly<Record<string, readonly string[]>> = { s: ['ſ'], k: ['\u212a'], n: ['ｎ'], e: ['e\u200b'] }

const textOf = (result: unknown) =>
  JSON.parse(((result as Fields).content as { text: string }[])[0]?.text ?? 'null') as Fields

/** A `fetch` that keeps the text of every answer, as far as it has been read. */
function recordingFetch(): { readonly fetch: Fetch; text(): string } {
  let text = ''
  const decode = new TextDecoder()
  return {
    text: () => text,
    async fetch(url, init) {
      const response = await fetch(url, init)
      const seen = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          text += decode.decode(chunk)
          controller.enqueue(chunk)
        },
      })
      return new Response(response.body?.pipeThrough(seen) ?? null, response)
    },
  }
}

withPart('go', 'a server written in Go', () => {
  beforeAll(async () => {
    const program = buildGoServer()
    const [older, newer] = [
      open.use(await startGoServer(program, 'legacy')),
      open.use(await startGoServer(program, 'modern')),
    ]
    const guards = [{ kind: 'path', arguments: ['path'], roots: ['/data'] }]
    toolway = open.use(
      await startToolway({
        mcpServers: {
          'old-stdio': { command: program, args: ['legacy'], guards },
          'new-stdio': { command: program, args: ['modern'], guards },
          'old-http': { url: older.url, guards },
          'new-http': { url: newer.url, guards },
        },
        policy: { blockedTools: ['*.delete_file'] },
        discovery: { listDeadline: '20s' },
      }),
    )
    const session = await rawSession(toolway)
    let id = 100
    const answer = async (headers: Record<string, string>, method: string, params: string) => {
      const body = `{"jsonrpc":"2.0","id":${++id},"method":${JSON.stringify(method)},"params":${params}}`
      return JSON.parse(messageOf((await rawRequest(toolway.url, { headers, body })).text))
    }
    senders.set('legacy', (method, params) => answer({ ...session.headers }, method, params))
    senders.set('modern', (method, params) => {
      const prefix = 'io.modelcontextprotocol/'
      const meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: able }
      const whole = params.includes('"_meta":{')
        ? params.replace('"_meta":{', `"_meta":{${JSON.stringify(meta).slice(1, -1)},`)
        : `${params.slice(0, -1)},"_meta":${JSON.stringify(meta)}}`
      const name = (JSON.parse(whole) as Fields)[nameField(method) ?? '']
      const headers = {
        ...goodHeaders(toolway),
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': encodeHeaderValue(name) }),
      }
      return answer(headers, method, whole)
    })
  })

  afterAll(() => open.disposeAsync())

  const crossings = eras.flatMap((era) => servers.map((server) => [era, server] as const))

  describe.each(crossings)('V1: a %s client and %s', (era, server) => {
    const send: Send = (method, params) => (senders.get(era) as Send)(method, params)
    const q = (value: unknown) => JSON.stringify(value)

    test('ordinary calls, resources, prompts and completions work', async () => {
      const read = await send('tools/call', `{"name":"${server}__read","arguments":{"path":"/data/a"}}`)
      expect(textOf(read.result)).toMatchObject({ ran: 'read', path: '/data/a' })
      expect(q((await send('resources/read', `{"uri":"go://${server}/open"}`)).result)).toContain('go://open')
      expect(q((await send('prompts/get', `{"name":"${server}__greet"}`)).result)).toContain('greet')
      const ref = `{"type":"ref/prompt","name":"${server}__greet"}`
      const completed = await send('completion/complete', `{"ref":${ref},"argument":{"name":"path","value":"x"}}`)
      expect(completed.result?.completion).toEqual({ values: ['ref/prompt greet x'] })
    })

    test('a denied tool stays denied, however its name is spelt', async () => {
      const denied = await send('tools/call', `{"name":"${server}__delete_file"}`)
      expect(q(denied)).toContain('TOOL_BLOCKED')
      for (const name of [...spellings('name'), 'n\\u0061me', 'name']) {
        for (const params of [
          `"name":"${server}__read","${name}":"delete_file"`,
          `"${name}":"delete_file","name":"${server}__read"`,
        ]) {
          const { result, error } = await send('tools/call', `{${params}}`)
          expect([result, error?.code], params).toEqual([undefined, -32602])
        }
      }
    })

    test('a guard is not passed by other arguments beside the guarded ones', async () => {
      const guarded = await send('tools/call', `{"name":"${server}__read","arguments":{"path":"/etc/shadow"}}`)
      expect(q(guarded)).toContain('INVALID_PATH')
      for (const name of spellings('arguments')) {
        const params = `{"name":"${server}__read","arguments":{"path":"/data/a"},"${name}":{"path":"/etc/shadow"}}`
        expect((await send('tools/call', params)).error?.code, name).toBe(-32602)
      }
      const twice = `{"name":"${server}__read","arguments":{"path":"/data/a","p\\u0061th":"/etc/shadow"}}`
      expect((await send('tools/call', twice)).error?.code).toBe(-32602)
      const folded = await send(
        'tools/call',
        `{"name":"${server}__read","arguments":{"path":"/data/a","PATH":"/etc/shadow"}}`,
      )
      expect(q(folded)).not.toContain('\\"path\\":\\"/etc/shadow')
      const carried = `{"name":"execute_tool","arguments":{"server":"${server}","tool":"read","args":{},"Args":{"path":"/etc/shadow"}}}`
      expect(q(await send('tools/call', carried))).not.toContain('ran')
    })

    test('another resource, prompt or reference cannot be slipped in', async () => {
      for (const name of spellings('uri')) {
        const params = `{"uri":"go://${server}/open","${name}":"go://secret"}`
        expect((await send('resources/read', params)).error?.code, name).toBe(-32602)
      }
      for (const name of spellings('name')) {
        const prompt = `{"name":"${server}__greet","${name}":"secret"}`
        expect((await send('prompts/get', prompt)).error?.code, name).toBe(-32602)
        const ref = `{"type":"ref/prompt","name":"${server}__greet","${name}":"secret"}`
        const completion = `{"ref":${ref},"argument":{"name":"path","value":"x"}}`
        expect((await send('completion/complete', completion)).error?.code, name).toBe(-32602)
      }
      const beside = `{"ref":{"type":"ref/prompt","name":"${server}__greet"},"Ref":{"name":"secret"},"argument":{"name":"path","value":"x"}}`
      expect((await send('completion/complete', beside)).error?.code).toBe(-32602)
    })

    test('unknown members and misspelt keys of _meta do not arrive', async () => {
      const params = `{"name":"${server}__read","later":1,"_meta":{"example.com/Agent":"x"}}`
      expect(textOf((await send('tools/call', params)).result)).toMatchObject({ ran: 'read', agent: '', task: false })
      const agent = `{"name":"${server}__read","_meta":{"dev.toolway/Agent":"root"}}`
      expect((await send('tools/call', agent)).error?.code).toBe(-32602)
    })
  })

  test('V1: with any additional member, the server runs the call that was decided or nothing', async () => {
    const values = { name: '"delete_file"', arguments: '{"path":"/etc/shadow"}' }
    const beside = fc.constantFrom<keyof typeof values>('name', 'arguments').chain((name) =>
      fc.record({
        spelt: fc.oneof(respelt(name), fc.string({ unit: anyCharacter, maxLength: 12 })),
        value: fc.constant(values[name]),
        first: fc.boolean(),
        crossing: fc.constantFrom(...crossings),
      }),
    )
    const holds = fc.asyncProperty(beside, async ({ spelt, value, first, crossing: [era, server] }) => {
      const right = `"name":"${server}__read","arguments":{"path":"/data/a"}`
      const other = `${JSON.stringify(spelt)}:${value}`
      const { result, error } = await (senders.get(era) as Send)(
        'tools/call',
        `{${first ? `${other},${right}` : `${right},${other}`}}`,
      )
      if (error) expect(error.code).toBe(-32602)
      else expect(textOf(result)).toMatchObject({ ran: 'read', path: '/data/a' })
    })
    await fc.assert(holds, runs(50, 200))
  })

  describe.each(crossings)('V1: questions to %s clients of %s', (era, server) => {
    const caller = (answer: (method: string) => unknown, fetch: Fetch = globalThis.fetch) =>
      connectCaller(era === 'modern' ? 'modern' : 'v1', toolway, { capabilities: able, answer, fetch })

    test('reaches them, and their answers reach the server', async () => {
      await using client = await caller((method) =>
        method === 'elicitation/create'
          ? { action: 'accept', content: { ok: true } }
          : { model: 'm', role: 'assistant', content: { type: 'text', text: 'Hi' } },
      )
      expect(textOf(await client.call(`${server}__ask`))).toMatchObject({ action: 'accept', content: { ok: true } })
      expect(textOf(await client.call(`${server}__sample`))).toMatchObject({ model: 'm', role: 'assistant' })
    })

    test('cannot be a method that MCP does not define', async () => {
      const asked: string[] = []
      // SDKs answer methods that they do not know themselves: what counts is what comes over the wire.
      const { fetch, text } = recordingFetch()
      await using client = await caller((method) => void asked.push(method), fetch)
      const result = await client.call(`${server}__evil`).catch((error: Error) => ({ message: error.message }))
      expect(JSON.stringify(result)).toMatch(server.startsWith('old') ? /-32601/ : /evil\/method/)
      expect(asked).toEqual([])
      expect(text()).not.toMatch(/"method":\s*"evil/)
    })

    test('is not answered twice in one answer', async () => {
      const answers = [
        '"action":"decline","Action":"accept"',
        '"action":"decline","action":"accept"',
        '"action":"decline","actıon":"accept"',
      ]
      for (const answer of answers) {
        const told = await (era === 'legacy' ? answeredInSession(server, answer) : answeredInRounds(server, answer))
        expect(told).not.toContain('accept')
        expect(told).toContain('-32602')
      }
    })
  })
})

/** Brings the answer with another call, as clients of the stateless era do. */
async function answeredInRounds(server: string, answer: string): Promise<string> {
  const send = senders.get('modern') as Send
  const { result } = await send('tools/call', `{"name":"${server}__ask"}`)
  const [key] = Object.keys(result?.inputRequests as Fields)
  const rest = `"inputResponses":{"${key}":{${answer}}},"requestState":${JSON.stringify(result?.requestState)}`
  return JSON.stringify(await send('tools/call', `{"name":"${server}__ask",${rest}}`))
}

/** Answers a question on the stream of the call; gives what is said to that, and what becomes of the call. */
async function answeredInSession(server: string, answer: string): Promise<string> {
  const post = (headers: Record<string, string>, body: string) =>
    fetch(toolway.url, { method: 'POST', headers: { ...goodHeaders(toolway), ...headers }, body })
  const hello = { protocolVersion: '2025-11-25', capabilities: able, clientInfo: { name: 'by hand', version: '1' } }
  const opened = await post({}, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: hello }))
  await opened.text()
  const own = { 'mcp-session-id': opened.headers.get('mcp-session-id') as string }
  const call = await post(own, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${server}__ask"}}`)
  const chunks = (call.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as never)
  let heard = ''
  let said = ''
  for await (const chunk of chunks as unknown as AsyncIterable<string>) {
    heard += chunk
    const [, id] = /"id":"(ask-\d+)"/.exec(heard) ?? []
    if (id === undefined || said !== '') continue
    said = await (await post(own, `{"jsonrpc":"2.0","id":"${id}","result":{${answer}}}`)).text()
  }
  return said + heard.slice(heard.lastIndexOf('data:'))
}

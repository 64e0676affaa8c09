import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { jsonValue } from '../../../src/json/parse-json.ts'
import { asRecord } from '../../../src/lib/is-record.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { type RawAsk, rawLines, rawModern } from '../../fixtures/raw-callers.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { runs } from '../../fixtures/runs.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { startVerbatim } from '../../fixtures/verbatim-server.ts'
import { type Carried, errorText, keyOf, linkingText, membersOf, type ResultText, resultText } from './json-text.ts'

const program = serverProgram('verbatim')
const open = new AsyncDisposableStack()

type Era = 'legacy' | 'modern'

interface RawCaller {
  readonly era: Era
  readonly transport: string
  readonly ask: RawAsk
}

const servers: { readonly name: string; readonly era: Era }[] = [
  { name: 'old-http', era: 'legacy' },
  { name: 'new-http', era: 'modern' },
  { name: 'old-stdio', era: 'legacy' },
  { name: 'new-stdio', era: 'modern' },
]

let callers: RawCaller[]

beforeAll(async () => {
  const [older, newer] = [open.use(await startVerbatim('legacy')), open.use(await startVerbatim('modern'))]
  const toolway = open.use(
    await startToolway({
      mcpServers: {
        'old-http': { url: older.url },
        'new-http': { url: newer.url },
        'old-stdio': { command: process.execPath, args: [program, 'legacy'] },
        'new-stdio': { command: process.execPath, args: [program, 'modern'] },
      },
    }),
  )
  callers = [
    { era: 'legacy', transport: 'HTTP', ask: (await rawSession(toolway)).ask },
    { era: 'modern', transport: 'HTTP', ask: rawModern(toolway) },
    { era: 'legacy', transport: 'stdio', ask: open.use(await rawLines(toolway.gateway, 'legacy')).ask },
    { era: 'modern', transport: 'stdio', ask: open.use(await rawLines(toolway.gateway, 'modern')).ask },
  ]
  for (const { ask } of callers) expect(await ask('tools/list')).toContain('new-stdio__say')
})

afterAll(() => open.disposeAsync())

/** What to ask of a server so that it answers with this text. */
function request(server: string, method: Carried, result: string): object {
  switch (method) {
    case 'tools/call':
    case 'prompts/get':
      return { name: `${server}__say`, arguments: { result } }
    case 'resources/read':
      return { uri: `verbatim://${server}/${Buffer.from(result).toString('base64url')}` }
    case 'completion/complete':
      return { ref: { type: 'ref/prompt', name: `${server}__say` }, argument: { name: 'result', value: result } }
  }
}

/** The text of the result, wherever the id stands. */
function resultIn(message: string): string {
  const [, result] = /^\{"jsonrpc":"2\.0","id":\d+,"result":(.*)\}$/s.exec(message) ?? []
  return result ?? expect.unreachable(message)
}

const envelopeKeys = ['resultType', 'ttlMs', 'cacheScope']
const isEnvelope = (member: string) => envelopeKeys.includes(keyOf(member))
/** Structured content that is no object, put into one for those who know nothing else. */
const structuredObject = (member: string) =>
  member.replace(/^("structuredContent"\s*:\s*)([^\s{].*)$/s, '$1{"result":$2}')
const trimmed = (members: readonly string[]) => members.map((member) => member.trim())

function check(text: ResultText, sent: string, received: string, caller: Era, server: Era): void {
  const arrived = membersOf(received)
  const around = arrived.filter(isEnvelope)
  const changesEra = caller === 'legacy' && server === 'modern' && text.envelope.length > 0
  const expected = trimmed(text.members).map((member) => (changesEra ? structuredObject(member) : member))
  expect(trimmed(arrived.filter((member) => !isEnvelope(member)))).toEqual(expected)
  if (caller === 'legacy') {
    if (server === 'legacy') expect(received).toBe(sent)
    expect(around).toEqual([])
    return
  }
  const own = new Map(around.map((member) => [keyOf(member), member.trim()]))
  expect(own.size).toBe(around.length)
  expect(own.get('resultType')).toMatch(/^"resultType"\s*:\s*"complete"$/)
  if (text.method === 'resources/read') expect([...own.keys()].sort()).toEqual([...envelopeKeys].sort())
  if (server === 'modern') for (const member of text.envelope) expect(own.get(keyOf(member))).toBe(member.trim())
  // What is missing is put before the rest, which stays to the byte.
  expect(received.endsWith(sent.slice(1))).toBe(true)
}

/** Asks every server in every way at once, and tells where something went wrong on the way. */
async function everywhere(
  asked: (server: Era) => { readonly method: Carried; readonly result: string; readonly error?: string },
  checked: (message: string, caller: Era, server: Era) => void,
): Promise<void> {
  for (const { name, era: serverEra } of servers) {
    const { method, result, error } = asked(serverEra)
    const params = error === undefined ? request(name, method, result) : failing(name, error)
    const answers = await Promise.all(callers.map(({ ask }) => ask(method, params)))
    for (const [index, received] of answers.entries()) {
      const { era, transport } = callers[index] as RawCaller
      try {
        checked(received, era, serverEra)
      } catch (cause) {
        const way = `${method} of ${name} to a ${era} caller over ${transport}`
        throw new Error(`${way}\nsent     ${error ?? result}\nreceived ${received}`, { cause })
      }
    }
  }
}

const failing = (server: string, error: string) => ({ name: `${server}__say`, arguments: { error } })

test('B2: any result crosses eras and transports byte for byte, except for the envelope of its era', async () => {
  const carried = fc.asyncProperty(resultText, (text) =>
    everywhere(
      (server) => ({ method: text.method, result: text[server] }),
      (message, caller, server) => check(text, text[server], resultIn(message), caller, server),
    ),
  )
  await fc.assert(carried, runs(16, 400))
})

test('T2: so does any error', async () => {
  const carried = fc.asyncProperty(errorText, (error) =>
    everywhere(
      () => ({ method: 'tools/call', result: '', error }),
      (message) => expect(message.slice(message.indexOf(',"error":'))).toBe(`,"error":${error}}`),
    ),
  )
  await fc.assert(carried, runs(8, 200))
})

test('B2: in a result that names resources their URIs are served ones, and nothing else is touched', async () => {
  const carried = fc.asyncProperty(linkingText, async ({ before, uri, after }) => {
    for (const { name } of servers) {
      const written = (scheme: string) => `${before}${JSON.stringify(`${scheme}${uri}`)}${after}`
      const params = request(name, 'tools/call', written('demo://'))
      const answers = await Promise.all(callers.map(({ ask }) => ask('tools/call', params)))
      for (const message of answers) expect(message).toContain(written(`demo://${name}/`).slice(1))
    }
  })
  await fc.assert(carried, runs(8, 200))
})

test('B2: line breaks between the tokens of a result may become spaces, and nothing else changes', async () => {
  const value = { content: [{ type: 'hologram', lines: 'one\ntwo\r\n', list: [1, { two: [] }] }], future: {} }
  const flat = (text: string) => text.replaceAll(/[\r\n ]+/g, ' ')
  for (const end of ['\n', '\r\n']) {
    const result = JSON.stringify(value, undefined, 3).replaceAll('\n', end)
    for (const { name } of servers.filter(({ name }) => name.endsWith('http'))) {
      for (const { ask } of callers) {
        const message = await ask('tools/call', request(name, 'tools/call', result))
        expect(flat(message)).toContain(flat(result).slice(1))
        expect(asRecord(jsonValue(message)).result).toMatchObject(value)
      }
    }
  }
})

test('B2: a result of a megabyte is passed on unchanged, however it is split', async () => {
  const text = 'grüß dich 😀 日本 \\u00e9'.repeat(30_000)
  const result = `{"content":[{"type":"text","text":"${text}"}],"resultType":"complete"}`
  await everywhere(
    () => ({ method: 'prompts/get', result }),
    (message, caller) => expect(resultIn(message) === (caller === 'legacy' ? without(result) : result)).toBe(true),
  )
})

const without = (result: string) => result.replace(',"resultType":"complete"', '')

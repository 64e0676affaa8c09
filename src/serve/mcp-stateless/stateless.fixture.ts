import type { Served, View } from '../../core/access.ts'
import { entryOf } from '../../core/call.fixture.ts'
import type { Handler } from '../../core/call.ts'
import type { Definition, Kind, Traits } from '../../core/entry.ts'
import { type RpcErrorObject, ServerError, ToolwayError } from '../../core/errors.ts'
import { resultOf, textResult } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { encodeHeaderValue } from '../../wire/param-headers.ts'
import { nameField } from '../../wire/revisions.ts'
import { createTestAccess, type TestAccess } from '../access.fixture.ts'
import { type Answer, openTestServer } from '../http/server.fixture.ts'

export const prefix = 'io.modelcontextprotocol/'

/** What a server of the stateless era answers that wants to know more. */
export const moreWanted =
  '{"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create","params":{"message":"\\u003f","requestedSchema":{"type":"object","properties":{"said":{"type":"string"}}}}}},"requestState":"theirs"}'

/** The errors of servers, spelt as no serialiser of ours would. */
export const serverErrors: Readonly<Record<string, string>> = {
  gone: '{"message":"gone", "code" : -32002 ,"data":{"uri":"test://gone","n":1.0}}',
  incapable: '{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}',
  visit:
    '{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example/","message":"Go"}]}}',
  own: '{"code":-32020,"message":"of another hop"}',
}

/** One question of the tool `ask_all`. */
export interface Asked {
  readonly method: string
  readonly params?: object
}

export const annotated = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    deep: { type: 'object', properties: { dry: { type: 'boolean', 'x-mcp-header': 'Dry' } } },
  },
}

/** The small catalog of the other tests, with some more in it that only the stateless era can try. */
export function createModernAccess(): TestAccess {
  const base = createTestAccess()
  const askAll: Handler = async ({ peer, signal, input }) => {
    const { questions } = input.arguments.value as { questions: readonly Asked[] }
    const answers = questions.map(({ method, params = {} }) => peer.ask(method, Json.of(params), signal))
    return textResult(JSON.stringify((await Promise.all(answers)).map(({ value }) => value)))
  }
  const extra = new Map<string, Served>()
  const add = (kind: Kind, name: string, run: Handler, more: Definition = {}, traits: Partial<Traits> = {}) => {
    const definition = { name, description: `The ${kind} ${name}`, ...more }
    const entry = entryOf({ kind, name, definition, run })
    extra.set(`${kind} ${name}`, { name, definition, entry: { ...entry, traits: { ...entry.traits, ...traits } } })
  }

  add('tool', 'in_headers', async ({ input }) => textResult(JSON.stringify(input.arguments.value)), {
    inputSchema: annotated,
  })
  add('tool', 'ask_all', askAll)
  add('tool', 'ask_in_turn', async ({ peer, signal, input }) => {
    const { questions } = input.arguments.value as { questions: readonly Asked[] }
    const answers: unknown[] = []
    for (const { method, params = {} } of questions) {
      peer.notify('notifications/progress', Json.of({ progressToken: 'upstream', progress: answers.length }))
      peer.notify('notifications/message', Json.of({ level: 'info', data: answers.length }))
      answers.push((await peer.ask(method, Json.of(params), signal)).value)
    }
    return textResult(JSON.stringify(answers))
  })
  add('tool', 'chat_while_away', async ({ peer, signal }) => {
    const answer = peer.ask('roots/list', Json.of({}), signal)
    // Late enough for the question to have reached the caller.
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
    peer.notify('notifications/progress', Json.of({ progressToken: 'upstream', progress: 1 }))
    peer.notify('notifications/message', Json.of({ level: 'info', data: 'away' }))
    await answer
    return textResult('back')
  })
  add('tool', 'visited', async ({ peer }) => {
    peer.notify('notifications/elicitation/complete', Json.of({ elicitationId: 'e1' }))
    return textResult('done')
  })
  add('tool', 'ask_then_fail', async ({ peer, signal }) => {
    const answer = await peer.ask('roots/list', Json.of({}), signal).catch((error: Error) => error.message)
    if (typeof answer === 'string') return textResult(`survived: ${answer}`)
    throw new ServerError(Json.raw<RpcErrorObject>(Buffer.from(serverErrors.own ?? '')))
  })
  const askOrReport: Handler = async ({ peer, signal }) => {
    const answer = await peer.ask('roots/list', Json.of({}), signal).catch((error: Error) => error.message)
    return resultOf({ content: [{ type: 'text', text: JSON.stringify(answer) }], isError: true })
  }
  add('tool', 'ask_or_report', askOrReport)
  add('tool', 'ask_then_break', async ({ peer, signal }) => {
    await peer.ask('roots/list', Json.of({}), signal).catch(() => {})
    throw new ToolwayError('OUTCOME_UNKNOWN', 'The call may have taken effect.')
  })
  add('tool', 'run_others', askOrReport, {}, { carries: true })
  add('tool', 'wait_then_ask', async (call) => {
    const wait = await base.view(call.caller).resolve('tool', 'wait')
    await wait.entry.run(call)
    const { peer, signal } = call
    return textResult(await peer.ask('roots/list', Json.of({}), signal).then(String, (error: Error) => error.message))
  })
  add('tool', 'ask_then_wait', async ({ peer, signal }) => {
    await peer.ask('roots/list', Json.of({}), signal)
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  add('tool', 'withdraw', async ({ peer }) => {
    const controller = new AbortController()
    const answer = peer.ask('roots/list', Json.of({}), controller.signal).catch(() => 'withdrawn')
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve))
    controller.abort()
    return textResult(String(await answer))
  })
  add('tool', 'more_wanted', async ({ input }) =>
    input.rest?.inputResponses === undefined
      ? { body: Json.raw(Buffer.from(moreWanted)), isError: false }
      : textResult(JSON.stringify(input.rest)),
  )
  add('prompt', 'ask_prompt', async ({ peer, signal }) => {
    const { value } = await peer.ask('roots/list', Json.of({}), signal)
    return resultOf({ messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(value) } }] })
  })
  add('resource', 'test://cached', async () => resultOf({ contents: [], ttlMs: 9, cacheScope: 'public' }))
  for (const [name, error] of Object.entries(serverErrors)) {
    const fail: Handler = async () => {
      throw new ServerError(Json.raw<RpcErrorObject>(Buffer.from(error)))
    }
    add('tool', `error_${name}`, fail)
    add('resource', `test://error/${name}`, fail)
  }

  const inner = base.view(undefined as never)
  const view: View = {
    ...inner,
    async resolve(kind, spelling) {
      const found = extra.get(`${kind} ${spelling}`)
      if (found === undefined) return inner.resolve(kind, spelling)
      // A server spells its URIs in its own way.
      return { ...found, ...(kind === 'resource' && { uri: spelling.replace('test://error/', 'test://') }) }
    },
  }
  return Object.create(base, { view: { value: () => view } }) as TestAccess
}

export interface Envelope {
  readonly capabilities?: object
  readonly logLevel?: string
  readonly progressToken?: string | number
  /** Whatever else `_meta` holds; a key set to undefined is left out. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** The `_meta` of a good request. */
export const metaOf = ({ capabilities = {}, logLevel, progressToken, meta }: Envelope = {}) => ({
  [`${prefix}protocolVersion`]: '2026-07-28',
  [`${prefix}clientCapabilities`]: capabilities,
  [`${prefix}clientInfo`]: { name: 'by hand', version: '1' },
  [`${prefix}logLevel`]: logLevel,
  progressToken,
  ...meta,
})

export interface Sending extends Envelope {
  readonly id?: string | number
  /** A header set to undefined is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

/** An HTTP server in front of that catalog, and a client of the stateless era that is written by hand. */
export async function openStatelessServer(settings: Parameters<typeof openTestServer>[0] = {}) {
  const access = createModernAccess()
  const server = await openTestServer({ ...settings, access })

  const post = (method: string, params: Readonly<Record<string, unknown>> = {}, sending: Sending = {}) => {
    const { id = 1, headers, signal } = sending
    const name = params[nameField(method) ?? '']
    return server.fetchRaw({
      body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: metaOf(sending) } },
      headers: {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        'mcp-name': typeof name === 'string' ? encodeHeaderValue(name) : undefined,
        ...headers,
      },
      ...(signal && { signal }),
    })
  }

  return {
    ...server,
    access,
    post,
    /** Sends a request and reads its answer, which must be plain. */
    async ask(method: string, params?: Readonly<Record<string, unknown>>, sending?: Sending) {
      const { statusCode: status, headers, body } = await post(method, params, sending)
      const text = await body.text()
      const { result, error, id } = JSON.parse(text) as Answer
      return { status, headers, text, result, error, id }
    },
    call: (name: string, args?: object, sending?: Sending) => post('tools/call', { name, arguments: args }, sending),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

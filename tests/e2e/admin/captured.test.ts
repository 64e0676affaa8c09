import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PlaygroundEvent } from '../../../src/admin/contract.ts'
import { connect } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, keyFor, originOf } from './people.ts'

const dev = keyFor('dev', ['dev'])
const config = {
  history: {},
  mcpServers: {
    probe: { ...stdioServers.probe(), env: { PROBE_TOKEN: 'probe-secret-value' }, capture: true },
    everything: { ...stdioServers.everything(), capture: true },
    quiet: stdioServers.probe(),
    guarded: { ...stdioServers.probe(), approve: ['echo'] },
  },
  capture: { maxBytesPerCall: '64KiB' },
  defaults: { agent: 'default' },
  agents: { default: { allow: { servers: ['*'] } }, dev: { allow: { servers: ['*'] } } },
  auth: { keys: [dev.configured] },
}

let gateway: LocalToolway
let ask: ReturnType<typeof asking>
beforeAll(async () => {
  gateway = await startToolway(config)
  ask = asking(originOf(gateway), gateway.token)
})
afterAll(() => gateway[Symbol.asyncDispose]())

const tryTool = async (name: string, args: object) =>
  (await ask(`tools/${name}/call`, { body: { arguments: args } })).json.call as string
const detailOf = async (id: string) => (await ask(`calls/${id}`)).json

describe('V11: a captured call', () => {
  test('comes with its arguments and result, and can be made again', async () => {
    const id = await tryTool('probe__echo', { message: "it's", big: 1 })
    const detail = await detailOf(id)
    expect(detail.captured.arguments).toMatchObject({ text: '{"message":"it\'s","big":1}', redacted: false })
    expect(detail.captured.result.text).toContain("Echo: it's")
    expect(detail.rerun).toEqual({ possible: true, reason: null, write: true })
    expect(detail.steps.map(({ name }: { name: string }) => name)).toEqual(['policy', 'checks', 'attempt'])
    const again = await ask(`calls/${id}/run`, { method: 'POST' })
    expect(again.json.result.content).toEqual([{ type: 'text', text: "Echo: it's" }])
    expect(again.json.call).not.toBe(id)
  })

  test('hides secrets, and is then not made again', async () => {
    const id = await tryTool('probe__echo', { message: 'probe-secret-value', password: 'hunter2' })
    const { captured, rerun } = await detailOf(id)
    expect(JSON.stringify(captured)).not.toMatch(/probe-secret-value|hunter2/)
    expect(captured.arguments).toMatchObject({ redacted: true, truncated: false })
    expect(rerun).toMatchObject({ possible: false, reason: expect.stringContaining('redacted') })
    const refused = await ask(`calls/${id}/run`, { method: 'POST' })
    expect([refused.status, refused.json.error.code]).toEqual([400, 'INVALID_ARGUMENTS'])
  })

  test('is cut at its limit, and is then not made again', async () => {
    const id = await tryTool('probe__echo', { message: 'x'.repeat(100_000) })
    const { captured, rerun } = await detailOf(id)
    expect(captured.arguments.truncated).toBe(true)
    expect(captured.arguments.text.length + captured.result.text.length).toBeLessThanOrEqual(64 * 1024)
    expect(rerun).toMatchObject({ possible: false, reason: expect.stringContaining('capture.maxBytesPerCall') })
  })

  test('is for admins; a call of a server that did not opt in has none', async () => {
    const quiet = await detailOf(await tryTool('quiet__echo', { message: 'x' }))
    expect(quiet).toMatchObject({ captured: null, rerun: { possible: false } })
    await using client = await connect('v2', { endpoint: { ...gateway, token: dev.key } })
    await client.callTool('probe__echo', { message: 'mine' })
    const [own] = (await asking(originOf(gateway), dev.key)('calls')).json.calls
    const seen = (await asking(originOf(gateway), dev.key)(`calls/${own.id}`)).json
    expect(seen).toMatchObject({ captured: null, rerun: null })
    expect((await asking(originOf(gateway), dev.key)(`calls/${own.id}/run`, { method: 'POST' })).status).toBe(403)
    expect((await detailOf(own.id)).captured.arguments.text).toBe('{"message":"mine"}')
  })

  test('filters of the calls combine', async () => {
    await tryTool('probe__fail', { error: { code: -32602, message: 'no' } })
    const found = (await ask('calls?server=probe&code=rpc%20-32602&outcome=failed&from=1&to=9999999999999')).json.calls
    expect(found).toHaveLength(1)
    expect((await ask('calls?server=probe&slowerThan=60000')).json.calls).toEqual([])
    const { captured } = await detailOf(found[0].id)
    expect(captured.error).toEqual({ code: 'rpc -32602', message: 'no' })
  })
})

/** Opens a playground stream; `events` grows as they arrive. */
function play(body: object) {
  const controller = new AbortController()
  const events: PlaygroundEvent[] = []
  const done = (async () => {
    const response = await fetch(`${originOf(gateway)}/admin/api/playground`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: controller.signal,
    })
    let rest = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (rest + chunk).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = /^data: ?(.*)$/m.exec(block)?.[1]
        if (data) events.push(JSON.parse(data) as PlaygroundEvent)
      }
    }
  })()
  const ofKind = <Kind extends PlaygroundEvent['kind']>(kind: Kind) =>
    events.filter((event): event is Extract<PlaygroundEvent, { kind: Kind }> => event.kind === kind)
  return { events, ofKind, done, cancel: () => controller.abort() }
}

describe('V11: the playground', () => {
  test('reports progress, and closing it cancels the call', async () => {
    const long = play({ name: 'everything__trigger-long-running-operation', arguments: { duration: 60, steps: 600 } })
    await until(() => long.ofKind('progress').length > 1, { what: 'a progress event' })
    long.cancel()
    await long.done.catch(() => {})
    const id = long.ofKind('start')[0]?.call ?? ''
    await until(async () => (await detailOf(id)).outcome === 'failed', { what: 'the end of the call' })
    const { code, captured } = await detailOf(id)
    expect(code).toBe('CANCELLED')
    expect(captured.progress.length).toBeGreaterThan(1)
  })

  test('passes on elicitation and sampling requests; only the same principal may answer, and once', async () => {
    const asking1 = play({ name: 'everything__trigger-elicitation-request' })
    await until(() => asking1.ofKind('ask').length === 1, { what: 'a ask event' })
    const [{ id, method, from } = { id: '', method: '', from: '' }] = asking1.ofKind('ask')
    expect([method, from]).toEqual(['elicitation/create', 'server'])
    const answer = { result: { action: 'accept', content: { name: 'Ada', check: true } } }
    const foreign = await asking(originOf(gateway), dev.key)(`playground/${id}/answer`, { body: answer })
    expect(foreign.status).toBe(400)
    expect((await ask(`playground/${id}/answer`, { body: {} })).status).toBe(400)
    expect((await ask(`playground/${id}/answer`, { body: answer })).status).toBe(204)
    await asking1.done
    expect(JSON.stringify(asking1.ofKind('end'))).toContain('Ada')
    expect((await ask(`playground/${id}/answer`, { body: answer })).status).toBe(400)

    const sampled = play({ name: 'everything__trigger-sampling-request', arguments: { prompt: 'hi', maxTokens: 10 } })
    await until(() => sampled.ofKind('ask').length === 1, { what: 'a ask event' })
    const refused = await ask(`playground/${sampled.ofKind('ask')[0]?.id}/answer`, { body: { error: 'Not now.' } })
    expect(refused.status).toBe(204)
    await sampled.done
    expect(JSON.stringify(sampled.ofKind('end'))).toContain('Not now.')
  })

  test('says that Toolway asks for an approval, not the server', async () => {
    const approved = play({ name: 'guarded__echo', arguments: { message: 'hi' } })
    await until(() => approved.ofKind('ask').length === 1, { what: 'an ask event' })
    const [{ id, from } = { id: '', from: '' }] = approved.ofKind('ask')
    expect(from).toBe('toolway')
    const body = { result: { action: 'accept', content: { approve: true } } }
    expect((await ask(`playground/${id}/answer`, { body })).status).toBe(204)
    await approved.done
    expect(JSON.stringify(approved.ofKind('end'))).toContain('Echo: hi')
  })

  test('reads resources, gets prompts and completes their arguments', async () => {
    const { resources } = (await ask('resources?server=everything&limit=500')).json
    const template = resources.find((one: { template: boolean }) => one.template)
    expect(template.uri).toContain('{')
    const plain = resources.find((one: { template: boolean }) => !one.template)
    const read = play({ operation: 'read_resource', name: plain.uri })
    await read.done
    expect(read.ofKind('end')[0]?.outcome.result).toMatchObject({ contents: [{ uri: plain.uri }] })
    const { prompts } = (await ask('prompts?server=everything')).json
    const complex = prompts.find(({ arguments: args }: { arguments: unknown[] }) => args.length > 1)
    const args = Object.fromEntries(complex.arguments.map(({ name }: { name: string }) => [name, 'Engineering']))
    const got = play({ operation: 'get_prompt', name: complex.name, arguments: args })
    await got.done
    expect(got.ofKind('end')).toHaveLength(1)
    const completing = prompts.find(({ name }: { name: string }) => name.includes('completable'))
    const argument = { name: completing.arguments[0].name, value: 'E' }
    const completed = await ask('completions', { body: { kind: 'prompt', name: completing.name, argument } })
    expect(completed.json.values).toContain('Engineering')
  })

  test('a tool that does not exist is an error of the request', async () => {
    const refused = await ask('playground', { body: { name: 'probe__nothing' } })
    expect([refused.status, refused.json.error.code]).toEqual([404, 'TOOL_NOT_FOUND'])
  })
})

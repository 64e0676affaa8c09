import { request } from 'node:http'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { connectCaller } from '../../fixtures/callers.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { goodHeaders, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

/** Each test has its own. All are made at once, because a running gateway looks for new ones only now and then. */
const names = ['client-v1', 'client-v2', 'client-modern', 'anna', 'bert', 'short-lived', 'listener', 'quiet']
const made = new Map<string, string>()

let toolway: Command
beforeAll(async () => {
  toolway = await startCommand({ auth: { maxFailures: 1_000 } })
  for (const name of names) made.set(name, await keys('create', name))
})
afterAll(() => toolway[Symbol.asyncDispose]())

/** The command line as an operator uses it, beside the running gateway. */
async function keys(...words: readonly string[]): Promise<string> {
  const configFile = toolway.configFile as string
  const { code, stdout, stderr } = await command(['keys', ...words, '--config', configFile], {
    cwd: dirname(configFile),
    env: process.env,
  })
  expect(code, stderr).toBe(0)
  return stdout.trim()
}

const holding = (token: string) => ({ url: toolway.url, token })

/** The status of a ping in a session that was opened before. */
const ping = async (token: string, session: string) =>
  (
    await rawRequest(toolway.url, {
      headers: { ...goodHeaders(holding(token)), 'mcp-session-id': session },
      body: rpc(1, 'ping'),
    })
  ).status

async function openSession(token: string): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } }
  const body = rpc(0, 'initialize', params)
  const { headers } = await rawRequest(toolway.url, { headers: goodHeaders(holding(token)), body })
  return String(headers['mcp-session-id'])
}

/** A key and the moment from which the running gateway knows it. */
async function newKey(name: string): Promise<string> {
  const key = made.get(name) ?? expect.unreachable(`${name} has no key`)
  await until(async () => (await openSession(key)) !== 'undefined', { what: 'the key to count' })
  return key
}

// At once, because each test has keys of its own, and a gateway looks at those of open streams every five seconds.
describe.concurrent('B6: API keys of a running gateway', () => {
  test('the stream of a revoked key is closed', async () => {
    const key = await newKey('listener')
    const headers = {
      ...goodHeaders(holding(key)),
      'mcp-session-id': await openSession(key),
      accept: 'text/event-stream',
    }
    let over = false
    const stream = request(toolway.url, { method: 'GET', headers }, (response) => {
      response.resume().on('error', () => {})
      response.on('close', () => {
        over = true
      })
    })
    stream.on('error', () => {}).end()
    await new Promise((resolve) => stream.once('response', resolve))
    await keys('revoke', 'listener')
    expect(over).toBe(false)
    await until(() => over, { what: 'the stream to end' })
  })

  test.each(['v1', 'v2', 'modern'] as const)('a %s client can use a key made on the command line', async (kind) => {
    const key = await newKey(`client-${kind}`)
    await using caller = await connectCaller(kind, holding(key))
    const { content } = await caller.call('native__hash', { data: 'hello', algorithm: 'sha256' })
    expect(JSON.stringify(content)).toContain('2cf24dba5fb0a30e')
  })

  test('the session of one key does not exist for another one, nor for the token', async () => {
    const [anna, bert] = [await newKey('anna'), await newKey('bert')]
    const session = await openSession(anna)
    expect(await ping(anna, session)).toBe(200)
    expect(await ping(bert, session)).toBe(404)
    expect(await ping(toolway.token, session)).toBe(404)
  })

  test('a revoked key is refused within a second, in the session that it opened too', async () => {
    const key = await newKey('short-lived')
    const session = await openSession(key)
    expect(await ping(key, session)).toBe(200)
    expect(await keys('revoke', 'short-lived')).toContain('Revoked')
    await until(async () => (await ping(key, session)) === 401, { what: 'the refusal' })
    await expect(rawSession(holding(key))).rejects.toThrow(/401/)
    await rawSession(toolway)
  })

  test('no key is in the log', async () => {
    const key = await newKey('quiet')
    const almost = `${key.slice(0, -4)}0000`
    await expect(rawSession(holding(almost))).rejects.toThrow(/401/)
    expect(toolway.said()).not.toContain(key.slice(-30, -4))
  })
})

test.concurrent('B6: where no credential is needed, a wrong one is still refused', async () => {
  await using open = await startCommand({ auth: { token: 'none' } })
  const { authorization: _, ...bare } = goodHeaders(open)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } }
  const body = rpc(0, 'initialize', params)
  const enter = (headers: Record<string, string>) => rawRequest(open.url, { headers: { ...bare, ...headers }, body })
  expect((await enter({})).status).toBe(200)
  for (const authorization of ['Bearer tw_x', 'Bearer twk_x', 'Bearer a.b.c', 'Basic YTpi', '']) {
    const { status, headers } = await enter({ authorization })
    expect(status, authorization).toBe(401)
    expect(headers['www-authenticate']).toBe('Bearer realm="toolway", error="invalid_token"')
  }
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApprovalView } from '../../../src/admin/contract.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, keyFor, originOf } from './people.ts'

const agent = keyFor('agent', ['default'])
const alice = keyFor('alice', ['default'])
const boss = keyFor('boss', ['default'])
const posts: { readonly body: Record<string, unknown>; readonly text: string }[] = []

const open = new AsyncDisposableStack()
let gateway: LocalToolway
let client: TestClient
let operator: ReturnType<typeof asking>
beforeAll(async () => {
  const receiver = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    posts.push({ text, body: JSON.parse(text) })
    response.writeHead(204).end()
  })
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening))
  open.defer(() => void receiver.close())
  gateway = open.use(
    await startToolway({
      history: {},
      mcpServers: { probe: { ...stdioServers.probe(), readTools: ['pid'], env: { TOKEN: 'probe-secret-value' } } },
      agents: { default: { allow: { servers: ['*'] }, approve: ['writes'] } },
      auth: { keys: [agent.configured, alice.configured, { ...boss.configured, admin: true }] },
      approvals: {
        by: ['admins', 'alice'],
        wait: '1m',
        webhook: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
      },
    }),
  )
  client = open.use(await connect('v1', { endpoint: { url: gateway.url, token: agent.key } }))
  operator = asking(originOf(gateway), gateway.token)
})
afterAll(() => open.disposeAsync())

const listed = async (ask = operator): Promise<readonly ApprovalView[]> => (await ask('approvals')).json
const waits = async (ask = operator): Promise<ApprovalView> => {
  await until(async () => (await listed(ask)).length > 0, { what: 'an approval' })
  return (await listed(ask))[0]!
}
const echo = (message: string, by = client) => by.callTool('probe__echo', { message })
const recordsOf = async (query: string) => {
  const { json } = await operator(`audit?${query}`)
  return json.rows as Record<string, unknown>[]
}

test('V7, V8: a call of a client without elicitation waits for a person, whose name is in its audit record', async () => {
  const running = echo('hello probe-secret-value; PASSWORD="$(id)"')
  const ask = asking(originOf(gateway), alice.key)
  const approval = await waits(ask)
  expect(approval).toMatchObject({
    ...{ agent: 'default', principal: 'key:agent', server: 'probe', tool: 'echo' },
    ...{ rule: 'agents.default.approve[0]', mayAnswer: true },
  })
  // Only the secret itself is replaced; what looks like one is shown, because it runs.
  expect(JSON.parse(approval.arguments)).toEqual({ message: 'hello [redacted]; PASSWORD="$(id)"' })
  const inbox = await operator('inbox')
  expect(inbox.json.items[0]).toMatchObject({ id: `approval:${approval.id}`, until: approval.until })
  expect(inbox.text).not.toContain('hello')
  expect((await ask(`approvals/${approval.id}`, { body: { decision: 'once' } })).json).toMatchObject({
    decision: 'once',
    tool: 'echo',
  })
  expect((await running).isError).toBeFalsy()
  expect((await operator('inbox')).text).not.toContain(approval.id)
  const again = await ask(`approvals/${approval.id}`, { body: { decision: 'deny' } })
  expect([again.status, again.json.error.code]).toEqual([400, 'INVALID_ARGUMENTS'])
  expect(await recordsOf('tool=echo&operation=call_tool')).toMatchObject([
    { approval: 'once', approver: 'key:alice', decision: 'ALLOW' },
  ])
  const answers = await recordsOf('operation=answer_approval')
  expect(answers).toMatchObject([{ principal: 'key:alice', tool: 'echo', arguments: { call: approval.call } }])
})

test('V8: callers cannot approve their own calls, and others only if they are named', async () => {
  const own = asking(originOf(gateway), agent.key)
  await using ofBoss = await connect('v1', { endpoint: { url: gateway.url, token: boss.key } })
  const running = echo('mine', ofBoss)
  const approval = await waits()
  expect(await listed(own)).toEqual([])
  expect((await own(`approvals/${approval.id}`, { body: { decision: 'once' } })).status).toBe(403)
  const asBoss = asking(originOf(gateway), boss.key)
  expect(await listed(asBoss)).toMatchObject([{ mayAnswer: false }])
  const refused = await asBoss(`approvals/${approval.id}`, { body: { decision: 'once' } })
  expect([refused.status, refused.json.error.code]).toEqual([403, 'DENIED_BY_POLICY'])
  // F11: both attempts are recorded, with who made them and what for.
  const attempts = await recordsOf('operation=answer_approval&decision=DENY')
  expect(attempts.map(({ principal }) => principal)).toEqual(['key:boss', 'key:agent'])
  expect(attempts).toMatchObject([{ tool: 'echo', rule: approval.rule }, { arguments: { call: approval.call } }])
  const body = { decision: 'deny', reason: 'Use the wiki instead.' }
  expect((await operator(`approvals/${approval.id}`, { body })).status).toBe(200)
  const { isError, content } = await running
  expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining('Use the wiki instead.')])
  expect((await recordsOf('tool=echo&decision=deny'))[0]).toMatchObject({ approval: 'deny', approver: 'token' })
})

test('V8: an approval for a session holds for its next calls, and not for another session', async () => {
  const running = echo('one')
  const { id } = await waits()
  await operator(`approvals/${id}`, { body: { decision: 'session' } })
  await running
  await echo('two')
  expect((await recordsOf('tool=echo&limit=1'))[0]).toMatchObject({ approval: 'session', approver: 'token' })
  await using other = await connect('v1', { endpoint: { url: gateway.url, token: agent.key } })
  const stop = new AbortController()
  const waiting = other.callTool('probe__echo', { message: 'three' }, { signal: stop.signal }).catch(() => 'cancelled')
  await waits()
  // A client that cancels its call leaves nothing behind.
  stop.abort()
  expect(await waiting).toBe('cancelled')
  await until(async () => (await listed()).length === 0, { what: 'the approval to disappear' })
})

test('V8: the webhook gets each approval, without its arguments and with a link', async () => {
  await until(() => posts.length >= 4, { what: 'all posts' })
  expect(posts[0]?.body).toMatchObject({
    ...{ event: 'approval', agent: 'default', server: 'probe', tool: 'echo' },
    url: `${originOf(gateway)}/approvals`,
  })
  const { text, until: end } = posts[0]!.body as Record<string, string>
  expect(text).toBe(`The agent default wants to call probe.echo. Answer by ${end}: ${originOf(gateway)}/approvals`)
  expect(posts.map(({ text }) => text).join('')).not.toMatch(/hello|probe-secret-value/)
})

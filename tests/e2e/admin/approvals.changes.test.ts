import { describe, expect, test } from 'vitest'
import type { ApprovalView } from '../../../src/admin/contract.ts'
import { connect } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, keyFor, originOf } from './people.ts'

const carl = keyFor('carl', ['default'])
const agent = keyFor('agent', ['default'])
const probe = { ...stdioServers.probe(), approve: ['echo'] }
const config = { mcpServers: { probe }, auth: { keys: [agent.configured, carl.configured] } }

/** A call that waits for a person, and the operator who can answer. */
async function startWaiting(toolway: LocalToolway, key = agent.key) {
  const client = await connect('v1', { endpoint: { url: toolway.url, token: key } })
  const running = client.callTool('probe__echo', { message: '/etc/ran' }).then(
    ({ content }) => JSON.stringify(content),
    (error: Error) => error.message,
  )
  const operator = asking(originOf(toolway), toolway.token)
  const waiting = async (): Promise<readonly ApprovalView[]> => (await operator('approvals')).json
  await until(async () => (await waiting()).length > 0, { what: 'an approval' })
  const approve = async (ask = operator) => {
    const [approval] = await waiting()
    return ask(`approvals/${approval?.id}`, { body: { decision: 'once' } })
  }
  /** The error code in the call's audit record. */
  const codeOf = async () => (await operator('audit?tool=echo&operation=call_tool&limit=1')).json.rows[0]?.code
  return { client, running, codeOf, operator, waiting, approve }
}

const change = async (toolway: LocalToolway, changed: Parameters<LocalToolway['rewrite']>[0]) => {
  const { successes } = toolway.gateway.reloadStatus()
  await toolway.rewrite(changed)
  await until(() => toolway.gateway.reloadStatus().successes > successes, { what: 'the reload' })
}

// At once, because each test has a gateway of its own and waits for it to read its file.
describe.concurrent('while a call waits for a person', () => {
  test.each([
    ['removed', { ...config, mcpServers: {} }, 'SERVER_NOT_FOUND'],
    ['disabled', { ...config, mcpServers: { probe: { ...probe, disabled: true } } }, 'SERVER_DISABLED'],
    [
      'given a guard that refuses the arguments',
      {
        ...config,
        mcpServers: { probe: { ...probe, guards: [{ kind: 'path', arguments: ['message'], roots: ['/nowhere'] }] } },
      },
      'INVALID_PATH',
    ],
  ])('V8, G8: its server is %s: the approved call does not run', async (_, changed, code) => {
    await using toolway = await startToolway(config, { watch: true })
    const { client, running, codeOf, approve } = await startWaiting(toolway)
    await using _client = client
    await change(toolway, changed)
    expect((await approve()).status).toBe(200)
    expect([await running, await codeOf()]).toEqual([expect.not.stringContaining('ran'), code])
  })

  test('V8, G8: its server gets new settings and is then paused: the approved call does not run', async () => {
    await using toolway = await startToolway(config, { watch: true })
    const { client, running, codeOf, operator, approve } = await startWaiting(toolway)
    await using _client = client
    await change(toolway, { ...config, mcpServers: { probe: { ...probe, timeout: '7s' } } })
    expect((await operator('servers/probe/disable', { body: {} })).status).toBe(200)
    await approve()
    expect([await running, await codeOf()]).toEqual([expect.not.stringContaining('ran'), 'SERVER_DISABLED'])
  })

  test('V8: others have to approve it now: they are asked, whoever answers first', async () => {
    await using toolway = await startToolway(config, { watch: true })
    const { client, running, waiting, approve } = await startWaiting(toolway)
    await using _client = client
    await change(toolway, { ...config, mcpServers: { probe: { ...probe, approvers: ['carl'] } } })
    const [before] = await waiting()
    await approve()
    await until(async () => (await waiting()).some(({ id }) => id !== before?.id), { what: 'another question' })
    expect((await approve()).status).toBe(403)
    expect((await approve(asking(originOf(toolway), carl.key))).status).toBe(200)
    expect(await running).toContain('ran')
  })

  test("V8: its caller's key is revoked: the approved call does not run", async () => {
    await using toolway = await startToolway(config, { watch: true })
    const operator = asking(originOf(toolway), toolway.token)
    const { json } = await operator('keys', { body: { id: 'brief', agents: ['default'] } })
    const { client, running, codeOf, approve } = await startWaiting(toolway, json.secret)
    await using _client = client
    expect((await operator('keys/brief/revoke', { body: {} })).status).toBe(200)
    await approve()
    expect([await running, await codeOf()]).toEqual([expect.not.stringContaining('ran'), 'DENIED_BY_POLICY'])
  })
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import type { ApprovalView } from '../../admin/contract.ts'
import { folder } from '../folder.fixture.ts'
import { recordedShell, toolway } from '../kit.fixture.ts'
import { run } from '../run.ts'

const approval = (id: string, more: Partial<ApprovalView> = {}): ApprovalView => ({
  ...{ id, call: 'c1', agent: 'dev', principal: 'key:dev', session: '0a1b2c3d', server: 'files', tool: 'write' },
  ...{ arguments: '{\n  "path": "/etc/x"\n}', rule: 'agents.dev.approve[0]', askedAt: Date.now() },
  ...{ until: Date.now() + 300_000, mayAnswer: true, ...more },
})

const open = new AsyncDisposableStack()
let waiting: ApprovalView[] = []
const answers: unknown[] = []
let at: { readonly cwd: string }
beforeAll(async () => {
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') return response.end(JSON.stringify(waiting))
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { decision: string }
    answers.push([request.url, body])
    response.end(JSON.stringify({ id: 'x', call: 'c1', server: 'files', tool: 'write', decision: body.decision }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  open.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  at = open.use(await folder({ 'toolway.json': { server: { port }, stores: { path: './state' } } }))
})
afterAll(() => open.disposeAsync())
beforeEach(() => {
  waiting = [approval('aaaa1111-1'), approval('aaaa2222-2', { tool: '\x1b[31mrm', mayAnswer: false })]
  answers.length = 0
})

test('V8: approvals are listed with all arguments, and cannot control the terminal', async () => {
  const { code, stdout } = await toolway(['approvals'], at)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^aaaa1111 +dev wants to call files\.write +\d+\.\d s left$/m)
  expect(stdout).toContain('  "path": "/etc/x"')
  expect(stdout).toContain('agents.dev.approve[0]')
  expect(stdout).not.toContain('\x1b[31m')
  const { approvals } = JSON.parse((await toolway(['approvals', '--json'], at)).stdout)
  expect(approvals).toEqual(JSON.parse(JSON.stringify(waiting)))
  waiting = []
  expect(await toolway(['approvals', 'list'], at)).toMatchObject({ code: 0, stdout: '' })
})

test('V8: an id may be shortened while it is unique', async () => {
  expect((await toolway(['approvals', 'allow', 'aaaa1'], at)).code).toBe(0)
  expect((await toolway(['approvals', 'allow', 'aaaa1111', '--session'], at)).code).toBe(0)
  expect((await toolway(['approvals', 'deny', 'aaaa1111-1', '--reason', 'No.'], at)).code).toBe(0)
  expect(answers).toEqual([
    ['/admin/api/approvals/aaaa1111-1', { decision: 'once' }],
    ['/admin/api/approvals/aaaa1111-1', { decision: 'session' }],
    ['/admin/api/approvals/aaaa1111-1', { decision: 'deny', reason: 'No.' }],
  ])
  expect((await toolway(['approvals', 'allow', 'aaaa'], at)).code).toBe(2)
  expect((await toolway(['approvals', 'allow', 'b'], at)).code).toBe(2)
  expect(answers).toHaveLength(3)
})

test('V8: --follow prints each approval once, until it is interrupted', async () => {
  const stop = new AbortController()
  const { shell, stdout } = recordedShell({ ...at, interrupted: stop.signal })
  const running = run(['approvals', '--follow', '--json'], shell)
  let printed = ''
  const lines = () => {
    printed = stdout()
    return printed.trim().split('\n').filter(Boolean).length
  }
  await until(() => lines() === 2, { what: 'the first approvals' })
  waiting = [...waiting, approval('bbbb3333-3')]
  await until(() => lines() === 3, { what: 'the new approval' })
  stop.abort()
  await running
  expect(
    printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).id),
  ).toEqual(waiting.map(({ id }) => id))
})

import { expect, test } from 'vitest'
import { type Eras, startFixture } from '../../conformance/fixture/http.ts'
import { able, type CallerKind, connectCaller, type StoryCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

/** A Toolway that can be started again at the same address, with what it keeps on disk and nothing else. */
async function startAgainAndAgain(eras: Eras, open: AsyncDisposableStack) {
  const fixture = open.use(await startFixture({ eras }))
  const folder = open.use(await temporaryFolder())
  const start = (port: number) =>
    startToolway({ server: { port }, mcpServers: { fixture: { url: fixture.url } } }, { folder })
  let current: LocalToolway = await start(0)
  open.defer(() => current[Symbol.asyncDispose]())
  return {
    endpoint: { url: current.url, token: current.token },
    async restart() {
      await current[Symbol.asyncDispose]()
      current = await start(Number(new URL(current.url).port))
    },
  }
}

const text = ({ content }: { content?: unknown }) => (content as [{ text: string }])[0].text
const greeting = 'This is a simple text response for testing.'

test.each(['v1', 'v2'] as const)(
  'B2: a legacy client (%s) gets a 404, initialises again and continues',
  async (kind) => {
    await using open = new AsyncDisposableStack()
    const toolway = await startAgainAndAgain('both', open)
    const before = open.use(await connectCaller(kind, toolway.endpoint))
    expect(text(await before.call('fixture__test_simple_text'))).toBe(greeting)
    const listed = await before.request('tools/list')
    await toolway.restart()
    const refused = await before.call('fixture__test_simple_text').catch((error) => error)
    expect(refused).toBeInstanceOf(Error)
    expect([refused.code, refused.data?.status]).toContain(404)
    const after = open.use(await connectCaller(kind, toolway.endpoint))
    expect(text(await after.call('fixture__test_simple_text'))).toBe(greeting)
    expect(await after.request('tools/list')).toEqual(listed)
  },
)

test.each(['legacy', 'modern'] as const)(
  'B2: a restart does not affect a modern client in front of a %s server',
  async (eras) => {
    await using open = new AsyncDisposableStack()
    const toolway = await startAgainAndAgain(eras, open)
    const caller = open.use(await connectCaller('modern', toolway.endpoint))
    for (let round = 0; round < 3; round++) {
      expect(text(await caller.call('fixture__test_simple_text'))).toBe(greeting)
      const { contents } = await caller.request('resources/read', { uri: 'test://fixture/static-text' })
      expect(contents).toMatchObject([{ uri: 'test://fixture/static-text' }])
      await toolway.restart()
    }
  },
)

/** A caller in whose answer to the first question Toolway is started again. */
async function connectSlow(kind: CallerKind, toolway: Awaited<ReturnType<typeof startAgainAndAgain>>) {
  let asked = 0
  const caller: StoryCaller = await connectCaller(kind, toolway.endpoint, {
    capabilities: able,
    async answer(_, params) {
      if (asked++ === 0) await toolway.restart()
      const content = String(params.message).includes('color') ? { color: 'green' } : { name: 'Ann', username: 'Ann' }
      return { action: 'accept', content }
    },
  })
  return { caller, asked: () => asked }
}

test('B2: also between two rounds of a call, because the state was sealed with a stored key', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = await startAgainAndAgain('modern', open)
  const { caller, asked } = await connectSlow('modern', toolway)
  open.use(caller)
  expect(text(await caller.call('fixture__test_input_required_result_multi_round'))).toBe('Ann likes green')
  expect(asked()).toBe(2)
})

test('B2: a call that waited at a server with sessions is lost with its connection, and the client gets an error to repeat it', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = await startAgainAndAgain('legacy', open)
  const { caller } = await connectSlow('modern', toolway)
  open.use(caller)
  const args = { message: 'Who are you?' }
  const lost = caller.call('fixture__test_elicitation', args)
  await expect(lost).rejects.toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } })
  expect(text(await caller.call('fixture__test_elicitation', args))).toContain('Ann')
})

test('B2: a listening client can listen again after a restart and gets updates', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = await startAgainAndAgain('both', open)
  const caller = open.use(await connectCaller('modern', toolway.endpoint))
  const uri = 'test://fixture/watched-resource'
  await caller.follow([uri])
  await toolway.restart()
  await caller.follow([uri])
  await expect
    .poll(async () => {
      await caller.call('fixture__test_trigger_resource_update')
      return caller.told('notifications/resources/updated').map((params) => params.uri)
    })
    .toContain(uri)
})

import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type HttpFixture, startFixture } from '../../conformance/fixture/http.ts'
import { type CallerKind, connectCaller, type StoryCaller } from '../../fixtures/callers.ts'
import { isBuried } from '../../fixtures/processes.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const kinds: CallerKind[] = ['v1', 'v2', 'modern', 'modern']
const program = serverProgram('watched')

/** Twenty clients of both eras that follow a resource. */
async function connectAll(toolway: LocalToolway, uri: string, open: AsyncDisposableStack): Promise<StoryCaller[]> {
  const names = Array.from({ length: 20 }, (_, index) => kinds[index % kinds.length] as CallerKind)
  const callers = await Promise.all(names.map((kind) => connectCaller(kind, toolway)))
  for (const caller of callers) open.use(caller)
  await Promise.all(callers.map((caller) => caller.follow([uri])))
  return callers
}

const toolsOf = async (caller: StoryCaller): Promise<string> => {
  const { tools } = await caller.request('tools/list')
  return (tools as { name: string }[]).map(({ name }) => name).join(' ')
}

/** Looks at the list of one client after another, and keeps every list that differs. */
function watchLists(callers: readonly StoryCaller[], open: AsyncDisposableStack) {
  const seen = new Set<string>()
  let looks = 0
  let over = false
  const watching = (async () => {
    for (; !over; looks++) {
      seen.add(await toolsOf(callers[looks % callers.length] as StoryCaller))
      // One look after the other would keep a core busy.
      await pause(20)
    }
  })()
  open.defer(() => {
    over = true
    return watching
  })
  return {
    seen,
    /** So many have looked once more. */
    async more(count: number) {
      const from = looks
      await until(() => looks > from + count, { what: 'clients to list the tools' })
    },
  }
}

const hears = (caller: StoryCaller, uri: string) => {
  const from = caller.heard.length
  return () =>
    caller.heard
      .slice(from)
      .some(({ method, params }) => method === 'notifications/resources/updated' && params.uri === uri)
}

/** From now on every one of them is told of a change. */
function allHear(callers: readonly StoryCaller[], uri: string): () => boolean {
  const ears = callers.map((caller) => hears(caller, uri))
  return () => ears.every((heard) => heard())
}

async function callAll(callers: readonly StoryCaller[], tool: string): Promise<void> {
  const results = await Promise.all(callers.map((caller) => caller.call(tool)))
  expect(results.filter(({ isError }) => isError)).toEqual([])
}

describe.each(['legacy', 'modern'] as const)('a %s server that starts again under 20 clients', (era) => {
  test('B2, F12: over HTTP: the next call succeeds, subscriptions are re-issued, no list is ever another', async () => {
    await using open = new AsyncDisposableStack()
    let fixture: HttpFixture = await startFixture({ eras: era })
    open.defer(() => fixture[Symbol.asyncDispose]())
    const toolway = open.use(await startToolway({ mcpServers: { fixture: { url: fixture.url } } }))
    const uri = 'test://fixture/watched-resource'
    const callers = await connectAll(toolway, uri, open)
    await callAll(callers, 'fixture__test_simple_text')
    const before = await toolsOf(callers[0] as StoryCaller)
    const lists = watchLists(callers, open)

    const port = Number(new URL(fixture.url).port)
    await fixture[Symbol.asyncDispose]()
    await lists.more(4)
    fixture = await startFixture({ eras: era, port })
    await callAll(callers, 'fixture__test_simple_text')

    const direct = open.use(await connectCaller(era === 'modern' ? 'modern' : 'v2', { url: fixture.url, token: '' }))
    const heard = allHear(callers, uri)
    const change = async () => {
      await direct.call('test_trigger_resource_update')
      return heard()
    }
    await until(change, { what: 'all to hear of changes again' })
    await lists.more(callers.length)
    expect([...lists.seen]).toEqual([before])
  })

  test('B2, F12: over stdio, killed: the same', async () => {
    await using open = new AsyncDisposableStack()
    const server = { command: process.execPath, args: [program, era] }
    const toolway = open.use(await startToolway({ mcpServers: { watched: server } }))
    const uri = 'watch://watched/clock'
    const callers = await connectAll(toolway, uri, open)
    await until(allHear(callers, uri), { what: 'all to hear of changes' })
    const before = await toolsOf(callers[0] as StoryCaller)
    expect(before).toContain('watched__pid')
    const lists = watchLists(callers, open)

    const killed = toolway.servers()
    expect(killed).toHaveLength(1)
    for (const pid of killed) process.kill(pid, 'SIGKILL')
    await until(() => killed.every(isBuried), { what: 'the server to be gone' })
    await callAll(callers, 'watched__pid')
    await until(allHear(callers, uri), { what: 'all to hear of changes again' })
    await lists.more(callers.length)
    expect([...lists.seen]).toEqual([before])
    expect(toolway.servers()).toHaveLength(1)
  })

  test('B2, F12: without a call in between, subscriptions are re-issued, too', async () => {
    await using open = new AsyncDisposableStack()
    let fixture: HttpFixture = await startFixture({ eras: era })
    open.defer(() => fixture[Symbol.asyncDispose]())
    const stdio = { command: process.execPath, args: [program, era] }
    const toolway = open.use(await startToolway({ mcpServers: { fixture: { url: fixture.url }, watched: stdio } }))
    const uris = { http: 'test://fixture/watched-resource', stdio: 'watch://watched/clock' }
    const caller = open.use(await connectCaller('modern', toolway))
    await caller.follow([uris.http, uris.stdio])
    await until(hears(caller, uris.stdio), { what: 'a change' })

    const port = Number(new URL(fixture.url).port)
    await fixture[Symbol.asyncDispose]()
    const killed = toolway.servers()
    for (const pid of killed) process.kill(pid, 'SIGKILL')
    fixture = await startFixture({ eras: era, port })
    await until(() => killed.every(isBuried), { what: 'the server to be gone' })

    await until(hears(caller, uris.stdio), { what: 'changes of the process' })
    const direct = open.use(await connectCaller(era === 'modern' ? 'modern' : 'v2', { url: fixture.url, token: '' }))
    const heard = hears(caller, uris.http)
    const change = async () => {
      await direct.call('test_trigger_resource_update')
      return heard()
    }
    await until(change, { what: 'changes of the server over HTTP' })
  })
})

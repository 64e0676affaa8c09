import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CallerKind, connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { type Era, startServer } from '../../fixtures/conversation/http.ts'
import { createLegacy } from '../../fixtures/notebook/legacy.ts'
import { modernMaker } from '../../fixtures/notebook/modern.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const program = serverProgram('notebook')

async function notebookEntry(era: Era, wire: string, open: AsyncDisposableStack) {
  if (wire === 'stdio') return { command: process.execPath, args: [program, era] }
  return { url: open.use(await startServer(era, { legacy: createLegacy, modern: modernMaker() })).url }
}

const names = ['ann', 'bob'] as const
const keyOf = (name: string) => `twk_${name}_0123456789abcdefghijklmnopqrstuvwxyz`
const keys = names.map((name) => ({
  id: name,
  hash: `sha256:${createHash('sha256').update(keyOf(name)).digest('hex')}`,
  agents: ['*'],
}))

interface Person {
  readonly name: string
  readonly caller: StoryCaller
  /** What it was asked, by whichever call. */
  readonly asked: string[]
}

async function connect(toolway: LocalToolway, name: string, kind: CallerKind, capabilities: Params): Promise<Person> {
  const asked: string[] = []
  const endpoint = { url: toolway.url, token: keyOf(name) }
  const caller = await connectCaller(kind, endpoint, {
    capabilities,
    answer(_, { message }) {
      asked.push(String(message))
      return { action: 'accept', content: { said: name } }
    },
  })
  return { name, caller, asked }
}

const saidBy = (result: Params) => JSON.parse((result.content as [{ text: string }])[0].text)

const count = 10
const all = Array.from({ length: count }, (_, index) => index)
const isCancelled = (index: number) => index % 5 === 3
const asks = (index: number) => index % 5 === 1

/** Ten writes at once, of which a fifth is cancelled in flight and a fifth asks, where it can. */
async function write({ name, caller }: Person, canBeAsked: boolean) {
  const cancel = new AbortController()
  const doomed = all.filter(isCancelled).map((index) => {
    const options = { signal: cancel.signal, progress: true }
    return caller.call('notes__write', { key: `${name}/${index}`, how: 'never' }, options)
  })
  const kept = all.filter((index) => !isCancelled(index))
  const results = kept.map(async (index) => {
    const how = asks(index) && canBeAsked ? 'ask' : 'plain'
    return saidBy(await caller.call('notes__write', { key: `${name}/${index}`, how }))
  })
  await until(() => caller.told('notifications/progress').length > 0, { what: 'a write to run' })
  cancel.abort()
  await Promise.allSettled(doomed)
  return { kept, written: await Promise.all(results) }
}

const cells: [CallerKind, boolean][] = [
  ['v2', false],
  ['v2', true],
  ['modern', false],
  ['modern', true],
]

// At once, because each has a gateway of its own and waits for its server.
describe.concurrent.each([
  ['legacy', 'stdio'],
  ['legacy', 'HTTP'],
  ['modern', 'stdio'],
  ['modern', 'HTTP'],
] as const satisfies [Era, string][])('one %s server over %s', (era, wire) => {
  const open = new AsyncDisposableStack()
  let toolway: LocalToolway

  beforeAll(async () => {
    // No call waits for a slot, which is a matter of seconds on a busy machine.
    const notes = { ...(await notebookEntry(era, wire, open)), concurrency: 200 }
    const limits = { perMinute: 100_000 }
    toolway = open.use(await startToolway({ mcpServers: { notes }, auth: { keys }, limits }))
  })
  afterAll(() => open.disposeAsync())

  test.each(cells)(
    'V3, G3: two %s callers (elicitation: %s) with 10 writes each, some cancelled, each see one state and their own questions',
    { concurrent: false },
    async (kind, canBeAsked) => {
      await using connected = new AsyncDisposableStack()
      const people = await Promise.all(
        names.map((name) => connect(toolway, name, kind, canBeAsked ? { elicitation: {} } : {})),
      )
      for (const { caller } of people) connected.use(caller)
      const outcomes = await Promise.all(people.map((person) => write(person, canBeAsked)))
      for (const [index, { name, caller, asked }] of people.entries()) {
        const { kept, written } = outcomes[index] as Awaited<ReturnType<typeof write>>
        const state = saidBy(await caller.call('notes__read'))
        expect(new Set([state.id, ...written.map(({ id }) => id)]).size).toBe(1)
        expect(state.keys).toEqual(expect.arrayContaining(kept.map((each) => `${name}/${each}`)))
        const asking = canBeAsked ? kept.filter(asks) : []
        expect(asked.sort()).toEqual(asking.map((each) => `May I write ${name}/${each}?`).sort())
        expect(written.flatMap(({ said }) => said ?? [])).toEqual(asking.map(() => name))
      }
    },
  )
})

describe.concurrent.each(['stdio', 'streamableHttp', 'sse'] as const)('the real server-everything over %s', (wire) => {
  const shared = new AsyncDisposableStack()
  let toolway: LocalToolway

  beforeAll(async () => {
    const everything =
      wire === 'stdio'
        ? stdioServers.everything()
        : { url: shared.use(await startEverything(wire)).url, ...(wire === 'sse' && { transport: 'sse' }) }
    toolway = shared.use(await startToolway({ mcpServers: { everything }, auth: { keys } }))
  })
  afterAll(() => shared.disposeAsync())

  test.each(['v2', 'modern'] as const)(
    'V3: a call that a %s client has cancelled costs later callers nothing',
    { concurrent: false },
    async (kind) => {
      await using open = new AsyncDisposableStack()
      const join = async (name: string) => {
        const person = await connect(toolway, name, kind, { elicitation: {} })
        open.use(person.caller)
        return person
      }
      const first = await join('ann')
      const cancel = new AbortController()
      const cancelled = first.caller.call(
        'everything__trigger-long-running-operation',
        { duration: 30, steps: 300 },
        { signal: cancel.signal, progress: true },
      )
      const running = () => first.caller.told('notifications/progress').length > 0
      await until(running, { what: 'the operation to run' })
      cancel.abort()
      await cancelled.catch(() => {})
      for (const person of [first, await join('ann'), await join('bob')]) {
        await person.caller.call('everything__trigger-elicitation-request')
        expect(person.asked).toHaveLength(1)
      }
    },
  )
})

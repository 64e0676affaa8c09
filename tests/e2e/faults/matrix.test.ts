import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rogue } from '../../../src/upstream/transports/stdio.fixture.ts'
import { type Bystander, watchBystander } from '../../fixtures/bystander.ts'
import { type FaultyHttp, startFaultyHttp } from '../../fixtures/faulty-http.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { createLedger, type Ledger } from '../../fixtures/ledger.ts'
import { descriptors, isBuried } from '../../fixtures/processes.ts'
import { type RawSession, rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

type Transport = 'stdio' | 'http' | 'sse'
/** Declared read-only by the operator, or not declared at all. */
type Tool = 'read_thing' | 'write_thing'
type Outcome = 'answered' | (string & {})
/** Servers that fail on their own, so that the tests of one need not wait for those of another. */
type Server = Tool | 'http' | 'sse'

const baseline = descriptors()
const open = new AsyncDisposableStack()
let folder: Folder
let ledger: Ledger
let toolway: LocalToolway
let caller: RawSession
let bystander: Bystander
const remote: Partial<Record<'http' | 'sse', FaultyHttp>> = {}

beforeAll(async () => {
  folder = open.use(await temporaryFolder())
  const file = join(folder.path, 'ledger')
  ledger = createLedger(file)
  remote.http = open.use(await startFaultyHttp('http', ledger))
  remote.sse = open.use(await startFaultyHttp('sse', ledger))
  const stdio = { command: process.execPath, args: [rogue, file] }
  const common = { readTools: ['read_*'], timeout: '20s', restarts: { max: 1000, window: '1s' } }
  toolway = open.use(
    await startToolway({
      mcpServers: {
        good: stdioServers.probe(),
        read_thing: { ...stdio, ...common },
        write_thing: { ...stdio, ...common },
        http: { url: remote.http.url, ...common },
        sse: { url: remote.sse.url, ...common },
      },
      // What is looked at here is the single call; a breaker would spare the later ones.
      breaker: { failures: 1000, rate: 1, minimumCalls: 10_000 },
    }),
  )
  caller = await rawSession(toolway)
  await caller.answer('tools/list')
  await call('good.echo', { message: 'up' })
  bystander = open.use(watchBystander(await rawSession(toolway)))
})

afterAll(() => open.disposeAsync())

const call = (name: string, args: object = {}) => caller.answer('tools/call', { name, arguments: args })

/** How a call ended: answered, with one of our codes, or with an error of the server. */
async function outcomeOf(server: string, tool: string, args: object, timeoutMs = 20_000): Promise<Outcome> {
  const { result, error } = await call('execute_tool', { server, tool, args, timeout_ms: timeoutMs })
  if (!result) return `rpc ${error?.code}`
  const { isError, _meta } = result as { isError?: boolean; _meta?: { 'dev.toolway/error'?: { code: string } } }
  return isError ? String(_meta?.['dev.toolway/error']?.code) : 'answered'
}

/** The server is as good as new. */
const recovered = (server: Server) => {
  const again = async () => (await outcomeOf(server, 'read_thing', { key: 'again' })) === 'answered'
  return until(again, { what: `${server} to come back` })
}

interface Fault {
  readonly name: string
  /** What a call of a tool that nobody has declared safe must come to, and how often it may have been done. */
  readonly expected: Readonly<Record<Transport, readonly [Outcome | readonly Outcome[], number] | undefined>>
  /** Makes the server ready to fail. */
  arm?(server: Server): Promise<unknown>
  disarm?(server: Server): Promise<unknown>
  readonly timeoutMs?: number
}

const isRemote = (server: Server): server is 'http' | 'sse' => server === 'http' || server === 'sse'
const down = ['SERVER_UNAVAILABLE', 'SERVER_UNHEALTHY'] as const
const alike = (outcome: Outcome, times: number) => {
  const expected = [outcome, times] as const
  return { stdio: expected, http: expected, sse: expected }
}

const faults: readonly Fault[] = [
  {
    // A process that has ended is started again; a remote server that does not listen got nothing.
    name: 'dead before the write',
    expected: { stdio: ['answered', 1], http: [down, 0], sse: [down, 0] },
    async arm(server) {
      if (isRemote(server)) return remote[server]?.stop()
      const { result } = await call(`${server}.exit-soon`)
      const pid = Number((result?.content as [{ text: string }] | undefined)?.[0].text)
      await until(() => isBuried(pid), { what: 'the process to be gone' })
    },
    disarm: async (server) => isRemote(server) && remote[server]?.start(),
  },
  {
    // Nobody but the server can tell that it has not read what the kernel took for it.
    name: 'unread',
    expected: alike('OUTCOME_UNKNOWN', 0),
    arm: async (server) => !isRemote(server) && call(`${server}.die-deaf`),
  },
  { name: 'crash', expected: alike('OUTCOME_UNKNOWN', 1) },
  { name: 'hang', expected: alike('TIMEOUT', 1), timeoutMs: 500 },
  { name: 'slow', expected: alike('answered', 1) },
  { name: 'reset', expected: alike('OUTCOME_UNKNOWN', 1) },
  { name: 'garbage', expected: alike('OUTCOME_UNKNOWN', 1) },
  // Over stdio there are no statuses; the server's own errors pass unchanged (T2).
  { name: '5xx', expected: { ...alike('OUTCOME_UNKNOWN', 1), stdio: ['rpc -32603', 1] } },
  { name: '401', expected: { ...alike('SERVER_UNAVAILABLE', 0), stdio: ['rpc -32001', 0] } },
  { name: 'redirect', expected: { ...alike('SERVER_UNAVAILABLE', 0), stdio: ['rpc -32002', 0] } },
  { name: 'half-closed', expected: alike('OUTCOME_UNKNOWN', 1) },
  {
    // The server may have run it before it said so.
    name: 'forgotten session',
    expected: { stdio: undefined, http: ['OUTCOME_UNKNOWN', 0], sse: undefined },
    arm: async (server) => isRemote(server) && remote[server]?.forget(),
  },
  { name: 'busy', expected: { stdio: undefined, http: ['SERVER_UNAVAILABLE', 0], sse: ['SERVER_UNAVAILABLE', 0] } },
  ...['noise', 'half-lines', 'invalid-utf8', 'flood-stdout', 'flood-stderr'].map((name) => ({
    name,
    expected: { stdio: ['answered', 1] as const, http: undefined, sse: undefined },
  })),
  // Only the next write can tell that nobody holds the other end.
  { name: 'input-closed', expected: { stdio: ['TIMEOUT', 1], http: undefined, sse: undefined }, timeoutMs: 500 },
  { name: 'giant-line', expected: { stdio: ['OUTCOME_UNKNOWN', 1], http: undefined, sse: undefined } },
  {
    name: 'input that nobody reads',
    expected: { stdio: ['TIMEOUT', 0], http: undefined, sse: undefined },
    arm: (server) => call(`${server}.die-deaf`, { afterMs: 2_000 }),
    timeoutMs: 500,
  },
]

const cases = (['stdio', 'http', 'sse'] as const).flatMap((transport) =>
  faults.flatMap(({ expected, ...fault }) => {
    const [outcomes = [], times = 0] = expected[transport] ?? []
    const codes = typeof outcomes === 'string' ? [outcomes] : outcomes
    const tools: readonly Tool[] = expected[transport] ? ['write_thing', 'read_thing'] : []
    return tools.map((tool) => ({
      ...fault,
      transport,
      server: transport === 'stdio' ? tool : transport,
      tool,
      codes,
      times,
    }))
  }),
)
/** What happens at the same time. */
const lanes = [
  { name: 'stdio, reads', servers: ['read_thing'] },
  { name: 'stdio, writes', servers: ['write_thing'] },
  { name: 'HTTP and SSE', servers: ['http', 'sse'] },
].map(({ name, servers }) => ({ name, lane: cases.filter(({ server }) => servers.includes(server)) }))

const processes = (): number[] => toolway.servers()

describe('F12, G2: every fault is reported as what it is, and no call is repeated unless that was declared safe', () => {
  describe.concurrent.each(lanes)('$name', ({ lane }) => {
    test.each(lane)('$transport: $name, $tool: $codes', { concurrent: false }, async (fault) => {
      const { transport, server, tool, name, codes, times, timeoutMs } = fault
      await recovered(server)
      const key = `${transport} ${tool} ${name}`
      await fault.arm?.(server)
      const outcome = await outcomeOf(server, tool, { key, fault: name }, timeoutMs)
      await fault.disarm?.(server)
      const done = ledger.count(key)
      if (tool === 'write_thing')
        expect({ outcome, done }).toEqual({ outcome: expect.toBeOneOf([...codes]), done: times })
      else {
        // One that was declared to only read may be tried again, and may then succeed.
        expect(outcome).toBeOneOf(['answered', ...codes])
        expect(done).toBeLessThanOrEqual(times + 2)
        if (outcome === 'answered') expect(done).toBeGreaterThanOrEqual(1)
      }
      await recovered(server)
      // What was not done in time is not done later either.
      expect(ledger.count(key)).toBe(done)
    })
  })

  test('security: no redirect was followed', () => {
    expect([remote.http?.followed, remote.sse?.followed]).toEqual([0, 0])
  })

  test("G2: another client's calls to a healthy server succeeded throughout", () => {
    const { answered, failures, slowestMs } = bystander
    console.info(`the bystander answered ${answered} times, at most after ${slowestMs.toFixed(0)} ms`)
    expect(failures).toEqual([])
    expect(answered).toBeGreaterThan(100)
  })

  test('B7: nothing is left behind: no process, no socket, no pipe', async () => {
    await open.disposeAsync()
    expect(processes()).toEqual([])
    await until(() => descriptors().sockets <= baseline.sockets && descriptors().pipes <= baseline.pipes, {
      what: `descriptors to go back to ${JSON.stringify(baseline)} from ${JSON.stringify(descriptors())}`,
    })
  })
})

import { Agent, type ClientRequest, get, type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { commandLine } from '../../fixtures/processes.ts'
import { toolwayMain } from '../../fixtures/programs.ts'
import { until } from '../../fixtures/until.ts'

const connectionCount = 12

describe.skipIf(process.platform === 'win32')('B10: a connection moves to the worker of its session', () => {
  const open = new AsyncDisposableStack()
  let toolway: Command
  const agents = Array.from({ length: connectionCount }, () => new Agent({ keepAlive: true, maxSockets: 1 }))

  beforeAll(async () => {
    toolway = open.use(await startCommand({}, { words: ['--workers', '2'] }))
    for (const agent of agents) open.defer(() => agent.destroy())
  })
  afterAll(() => open.disposeAsync())

  const headers = (session?: string) => ({
    authorization: `Bearer ${toolway.token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(session !== undefined && { 'mcp-session-id': session }),
  })

  interface Answer {
    readonly status: number | undefined
    readonly text: string
    readonly session: string
    /** Whether the connection was open before. */
    readonly isReused: boolean
  }

  const read = async (asked: ClientRequest): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    asked.once('response', resolve).once('error', reject)
    const response = await promise
    const { statusCode: status, headers } = response
    const text = (await response.toArray()).join('')
    return { status, text, session: String(headers['mcp-session-id']), isReused: asked.reusedSocket }
  }

  const post = (body: object, session?: string, agent?: Agent) => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...body })
    const sized = { ...headers(session), 'content-length': String(Buffer.byteLength(text)) }
    const asked = request(toolway.url, { method: 'POST', headers: sized, agent: agent ?? false })
    asked.end(text)
    return read(asked)
  }

  const openSession = async () => {
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    return (await post({ id: 0, method: 'initialize', params })).session
  }

  const call = (id: number, session: string, agent?: Agent) =>
    post({ id, method: 'tools/call', params: { name: 'time', arguments: { name: 'get_time_utc' } } }, session, agent)

  const workers = () => toolway.children().filter((pid) => commandLine(pid).includes(`${toolwayMain} serve`))

  /** How many calls each worker has run. */
  const callsOf = async () => {
    const page = get(new URL('/metrics', toolway.url), { headers: headers(), agent: false })
    const counts = new Map<string, number>()
    for (const [, worker = '', count] of (await read(page)).text.matchAll(
      /^toolway_operations_total\{worker="(\d)"[^}]*\} (\d+)$/gm,
    ))
      counts.set(worker, (counts.get(worker) ?? 0) + Number(count))
    return counts
  }

  test('also if the session changes, and while streams are open and clients disconnect', async () => {
    const sessions = await Promise.all(Array.from({ length: 6 }, openSession))
    for (const session of sessions) {
      const stream = get(toolway.url, { headers: { ...headers(session), accept: 'text/event-stream' }, agent: false })
      stream.on('error', () => {})
      open.defer(() => void stream.destroy())
    }
    const answers = agents.map(async (agent, index) => {
      for (let round = 0; round < 30; round++) {
        const id = index * 1_000 + round
        const session = sessions[(index + (round % 5 === 0 ? round : 0)) % sessions.length] ?? ''
        if (round % 10 === 9) {
          const gone = request(toolway.url, { method: 'POST', headers: headers(session), agent: false })
          gone.on('error', () => {}).end(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' }))
          setTimeout(() => gone.destroy(), round % 7)
        }
        const { status, text, isReused } = await call(id, session, agent)
        expect([status, JSON.parse(text).id, isReused]).toEqual([200, id, round > 0])
      }
    })
    await Promise.all(answers)
  })

  test('and does not end with the worker that accepted it', async () => {
    for (const agent of agents) agent.destroy()
    const before = await callsOf()
    const session = await openSession()
    for (const [id, agent] of agents.entries()) expect((await call(id, session, agent)).status).toBe(200)
    const after = await callsOf()
    const grown = [...after].filter(([worker, count]) => count - (before.get(worker) ?? 0) >= connectionCount)
    const [[owner] = []] = grown
    expect(grown).toHaveLength(1)
    const other = workers()[owner === '1' ? 1 : 0] as number
    process.kill(other, 'SIGKILL')
    await until(() => !workers().includes(other), { what: 'the end of the other worker' })
    const answers = await Promise.all(agents.map((agent, id) => call(id, session, agent)))
    expect(answers.map(({ status, isReused }) => [status, isReused])).toEqual(agents.map(() => [200, true]))
  })
})

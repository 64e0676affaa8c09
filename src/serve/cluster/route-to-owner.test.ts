import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import type { Membership, TakenOver } from '../../core/cluster.ts'
import { silentLog } from '../../core/log.ts'
import { toHttpError } from '../errors.ts'
import { createOwnerRouting } from './route-to-owner.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const identity = { principal: 'anna', authenticated: true, admin: false, agents: [] }

/** A server at a free port. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.defer(() => server.closeAllConnections())
  open.defer(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface Knows {
  /** Where others are. */
  readonly known?: Map<string, string>
  takeOver?(session: string, unreachable: string | undefined): TakenOver | Promise<TakenOver>
  /** Replicas whose heartbeat has expired. */
  readonly gone?: Set<string>
  readonly clock?: Clock
  /** Happens while another one is looked for. */
  meanwhile?(response: ServerResponse): void
}

const fleetOf = ({ known = new Map(), gone = new Set(), takeOver = () => undefined }: Knows): Membership => ({
  self: 'self',
  addressOf: (replica) => known.get(replica),
  isGone: (replica) => gone.has(replica),
  unreachable: (replica) => void known.delete(replica),
  keep: async () => true,
  takeOver: async (session, unreachable) => takeOver(session, unreachable),
  forget() {},
  sign: (text) => text,
  verify: (text) => text,
})

/** A replica that answers with its name what it has not handed over. */
async function replica(knows: Knows) {
  const held = new Set<string>()
  const adopted: string[] = []
  const elsewhere = createOwnerRouting({
    membership: fleetOf(knows),
    clock: knows.clock ?? systemClock,
    holds: (session) => held.has(session),
    adopt(session, record) {
      adopted.push(record)
      held.add(session)
    },
  })
  let requests = 0
  let here = 0
  const url = await serve(async (request, response) => {
    requests++
    const session = String(request.headers['mcp-session-id'])
    const led = elsewhere.route({ request, response, identity, body: Buffer.alloc(0) })
    knows.meanwhile?.(response)
    try {
      if (await led) return
    } catch (thrown) {
      response.writeHead(toHttpError(thrown, silentLog).status).end()
      return
    }
    here++
    if (held.has(session)) response.end('held')
    else response.writeHead(404).end()
  })
  return { url, adopted, requests: () => requests, here: () => here, drain: elsewhere.drain }
}

const ask = async (url: string, session = 'gone.1') => {
  const answer = await fetch(url, { method: 'POST', headers: { 'mcp-session-id': session } })
  return [answer.status, await answer.text()]
}

test('B10, G3: of several requests that come at once for an orphan one takes it over, and all are answered in it', async () => {
  const all = Promise.withResolvers<void>()
  let asking = 0
  const takeOver = async (): Promise<TakenOver> => {
    if (++asking === 4) all.resolve()
    await all.promise
    return { record: 'it' }
  }
  const { url, adopted } = await replica({ takeOver })
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask(url)))
  expect(answers).toEqual(Array(4).fill([200, 'held']))
  expect(adopted).toEqual(['it'])
})

test('B10: a request is not forwarded in circles: the replica that all take for the owner takes the session over', async () => {
  const known = new Map<string, string>()
  const takeOver = (_: string, unreachable: string | undefined): TakenOver =>
    unreachable === 'gone' ? { record: 'it' } : { heldBy: 'gone', address: known.get('gone') ?? '' }
  const { url, adopted, requests } = await replica({ known, takeOver })
  // It is itself at the address of the one before.
  known.set('gone', url)
  expect(await ask(url)).toEqual([200, 'held'])
  expect(adopted).toEqual(['it'])
  expect(requests()).toBeLessThan(6)
})

test('B10: the owner of a session is remembered while the registry is unavailable', async () => {
  const heir = await serve((_request, response) => response.end('the heir'))
  let asked = 0
  const takeOver = (): TakenOver => (asked++ === 0 ? { heldBy: 'heir', address: heir } : undefined)
  const { url } = await replica({ known: new Map([['heir', heir]]), takeOver })
  expect(await ask(url)).toEqual([200, 'the heir'])
  expect(await ask(url)).toEqual([200, 'the heir'])
  expect(asked).toBe(1)
})

test('B10, G3: a client that disconnects causes no takeover of its session', async () => {
  const known = new Map([['gone', await serve((_request, response) => response.end('the holder'))]])
  const leaves = { meanwhile: (response: ServerResponse) => void response.destroy() }
  const { url, adopted, here } = await replica({ known, takeOver: () => ({ record: 'it' }), ...leaves })
  await expect(ask(url)).rejects.toThrow('fetch failed')
  expect(await ask(await replica({ known }).then((other) => other.url))).toEqual([200, 'the holder'])
  expect([adopted, here()]).toEqual([[], 0])
})

test('B10: nothing is started for a client that disconnects during the lookup', async () => {
  const left = Promise.withResolvers<TakenOver>()
  const meanwhile = (response: ServerResponse) => {
    response.once('close', () => left.resolve({ heldBy: 'heir', address: heir })).destroy()
  }
  let heard = 0
  const heir = await serve(() => heard++)
  const { url, here } = await replica({ takeOver: () => left.promise, meanwhile })
  await expect(ask(url)).rejects.toThrow('fetch failed')
  await left.promise
  expect(await ask(await serve((_request, response) => response.end()))).toEqual([200, ''])
  expect([heard, here()]).toEqual([0, 0])
})

test('B10: a session of a replica that refuses a request because it stops moves to this one', async () => {
  const stopping = await serve((_request, response) =>
    response.writeHead(503, { 'toolway-stopping': '1' }).end('later'),
  )
  const { url, adopted } = await replica({ known: new Map([['gone', stopping]]), takeOver: () => ({ record: 'it' }) })
  expect(await ask(url)).toEqual([200, 'held'])
  expect(adopted).toEqual(['it'])
})

test('B10: a session is followed when its holders stop one after another, but not forever', async () => {
  const stopping = await serve((_request, response) => response.writeHead(503, { 'toolway-stopping': '1' }).end())
  const last = await serve((_request, response) => response.end('the last'))
  const moves = ['one', 'two', 'three']
  const next = (): TakenOver => {
    const heldBy = moves.shift() ?? 'last'
    return { heldBy, address: heldBy === 'last' ? last : stopping }
  }
  expect(await ask((await replica({ takeOver: next })).url)).toEqual([200, 'the last'])
  const always = await replica({ takeOver: () => ({ heldBy: 'one', address: stopping }) })
  expect(await ask(always.url)).toEqual([503, ''])
})

test.each<[string, RequestListener, (answer: Promise<unknown>) => Promise<void>]>([
  [
    'refuses it for another reason',
    (_request, response) => response.writeHead(503).end('full'),
    (answer) => expect(answer).resolves.toEqual([503, 'full']),
  ],
  [
    'may have run it before the connection broke',
    ({ socket }) => socket.resetAndDestroy(),
    (answer) => expect(answer).resolves.toEqual([502, '']),
  ],
])('B10: a request is not repeated elsewhere if the replica %s', async (_, owner, check) => {
  const known = new Map([['gone', await serve(owner)]])
  const { url, adopted, here } = await replica({ known, takeOver: () => ({ record: 'it' }) })
  await check(ask(url))
  expect([adopted, here()]).toEqual([[], 0])
})

test('F10: a request to a replica that hangs fails when its heartbeat has expired, and not before', async () => {
  const arrived = Promise.withResolvers<void>()
  const known = new Map([['gone', await serve(() => arrived.resolve())]])
  const clock = createManualClock()
  const gone = new Set<string>()
  const { url, here } = await replica({ known, gone, clock })
  let settled = false
  const answer = ask(url).finally(() => {
    settled = true
  })
  await arrived.promise
  await clock.pass(600_000)
  gone.add('gone')
  await clock.pass(2_000)
  // One missed heartbeat can mean that the replica is busy.
  gone.delete('gone')
  await clock.pass(2_000)
  expect(settled).toBe(false)
  gone.add('gone')
  await clock.pass(4_000)
  expect(await answer).toEqual([502, ''])
  expect([here(), clock.pending]).toEqual([0, 0])
})

test('F10: a stream from a replica that hangs ends when its heartbeat has expired', async () => {
  const owner = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const clock = createManualClock()
  const { url } = await replica({ known: new Map([['gone', owner]]), gone: new Set(['gone']), clock })
  const stream = await fetch(url, { headers: { 'mcp-session-id': 'gone.1' } })
  const reading = stream.text()
  await clock.pass(4_000)
  await expect(reading).rejects.toThrow('terminated')
})

test('B10: a replica that stops relays requests, but no new streams', async () => {
  const owner = await serve((_request, response) => response.end('the owner'))
  const { url, drain } = await replica({ known: new Map([['gone', owner]]) })
  drain()
  expect(await ask(url)).toEqual([200, 'the owner'])
  expect((await fetch(url, { headers: { 'mcp-session-id': 'gone.1' } })).status).toBe(503)
})

test('B10: a replica that stops takes over no sessions', async () => {
  const { url, adopted, drain } = await replica({ takeOver: () => ({ record: 'it' }) })
  drain()
  expect(await ask(url)).toEqual([503, ''])
  expect(adopted).toEqual([])
})

test('B10: a machine that does not respond at all counts as gone after a second', async () => {
  const known = new Map([['gone', await silentAddress()]])
  const { url } = await replica({ known, takeOver: () => ({ record: 'it' }) })
  expect(await ask(url)).toEqual([200, 'held'])
})

/** Where connections are neither taken nor refused: a listener that stands still, and whose queue is full. */
async function silentAddress(): Promise<string> {
  const program = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    process.stdout.write(String(this.address().port))
  })`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  open.defer(() => void child.kill('SIGKILL'))
  const [port] = await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  for (;;) {
    const socket: Socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    open.defer(() => void socket.destroy())
    const taken = once(socket, 'connect').then(() => true)
    const waited = new Promise<boolean>((resolve) => setTimeout(resolve, 100, false))
    if (!(await Promise.race([taken, waited]))) return `http://127.0.0.1:${port}`
  }
}

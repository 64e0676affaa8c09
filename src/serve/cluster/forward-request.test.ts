import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { silentLog } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { clientAddress, forwardedFrom, forwardToAdminWorker } from './forward-request.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

/** A server at a free port. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.defer(() => server.closeAllConnections())
  open.defer(() => void server.close())
  return (server.address() as AddressInfo).port
}

const membership = { sign: (note: string) => note, verify: (note: string) => note } as unknown as Membership

/** A worker that leads all that comes to another one, which writes down what it is asked. */
async function twoWorkers(at?: number) {
  const asked: string[] = []
  const lead = await serve(async (request, response) => {
    const body = await text(request)
    asked.push(`${request.method} ${request.url} ${body}`)
    response.end('led')
  })
  const port = await serve((request, response) => {
    const workers = { membership, port: undefined, lead: () => `http://127.0.0.1:${at ?? lead}` }
    void forwardToAdminWorker(request, response, { membership, workers, clock: systemClock, log: silentLog })
  })
  return { port, asked }
}

/** The response to these lines, sent on a new connection. */
async function say(port: number, ...lines: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(lines.join('\r\n'))
  return text(socket)
}

describe('B10: requests for the dashboard are forwarded to one worker', () => {
  test('and never to another host, whatever the target of the request looks like', async () => {
    const { port, asked } = await twoWorkers()
    let others = 0
    const other = await serve((_request, response) => {
      others++
      response.end('not for you')
    })
    const targets = [`//127.0.0.1:${other}/secret`, `/\\127.0.0.1:${other}/secret`, '//[', '/a/../b?c#d']
    for (const target of targets) {
      expect(await say(port, `GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close', '', '')).toContain('led')
    }
    expect(asked).toEqual(targets.map((target) => `GET ${target} `))
    expect(others).toBe(0)
  })

  test('a worker that is being replaced causes an error in the format of the admin API', async () => {
    const gone = await serve(() => {})
    await open.disposeAsync()
    open = new AsyncDisposableStack()
    const { port } = await twoWorkers(gone)
    const answer = await fetch(`http://127.0.0.1:${port}/admin/api/stats`)
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await answer.json()).toMatchObject({
      error: { code: 'OVERLOADED', message: expect.stringContaining('try again') },
    })
  })

  test('one that exits before it responds is a failure that says whether the request can be repeated', async () => {
    const dying = await serve(({ socket }) => socket.resetAndDestroy())
    const { port } = await twoWorkers(dying)
    const ask = async (method: string) => {
      const answer = await fetch(`http://127.0.0.1:${port}/admin/api/keys`, { method })
      return [answer.status, ((await answer.json()) as { error: { code: string } }).error.code]
    }
    expect(await ask('GET')).toEqual([503, 'OVERLOADED'])
    expect(await ask('POST')).toEqual([502, 'OUTCOME_UNKNOWN'])
  })

  test('with its body, and without what was said about the hop before', async () => {
    const { port, asked } = await twoWorkers()
    const last = ['Host: a', 'Connection: close']
    const whole = ['Content-Length: 4', '', 'body']
    const chunked = ['Transfer-Encoding: chunked', '', '4', 'body', '0', 'Odd: 1', '', '']
    for (const method of ['POST', 'GET', 'DELETE']) {
      for (const body of [whole, chunked]) {
        for (const odd of [[], ['Trailer: Odd', 'TE: trailers', 'Expect: 100-continue']]) {
          expect(await say(port, `${method} /admin HTTP/1.1`, ...last, ...odd, ...body)).toContain('led')
          expect(asked.pop()).toBe(`${method} /admin body`)
        }
      }
    }
  })
})

describe('B6: the address of a client', () => {
  const sealedBy = (secret: string) => {
    const seal = createSeal(secret)
    return {
      sign: (text: string) => seal.close(text, 'fleet'),
      verify: (text: string) => seal.open(text, 'fleet'),
    } as unknown as Membership
  }
  const ours = sealedBy('a secret of all replicas')
  const seen = (note: string, membership: Membership | undefined = ours) => {
    const request = { headers: { 'toolway-client': note }, socket: { remoteAddress: '192.0.2.9' } }
    return clientAddress(request as unknown as ReceivedRequest, membership)
  }

  test('is the one that another replica signed', () => {
    expect(seen(ours.sign(`${Date.now()} 203.0.113.7 1`))).toBe('203.0.113.7')
  })

  test('is that of its connection if the forwarded address has no valid, recent signature', () => {
    const note = `${Date.now()} 203.0.113.7 1`
    const forged = [note, sealedBy('a guess').sign(note), `${ours.sign(note)}x`, '', 'constructor']
    for (const one of [...forged, ours.sign(`${Date.now() - 120_000} 203.0.113.7 1`)]) {
      expect([one, seen(one)]).toEqual([one, '192.0.2.9'])
    }
    expect(seen(note, undefined)).toBe('192.0.2.9')
  })
})

test('B10: a forwarded request is recognized although the wall clock was set meanwhile, and not a minute later', async () => {
  const notes: string[] = []
  const lead = await serve((request, response) => {
    notes.push(String(request.headers['toolway-client']))
    response.end('led')
  })
  const port = await serve((request, response) => {
    const workers = { membership, port: undefined, lead: () => `http://127.0.0.1:${lead}` }
    void forwardToAdminWorker(request, response, { membership, workers, clock: systemClock, log: silentLog })
  })
  await fetch(`http://127.0.0.1:${port}/admin/api/stats`)
  const read = () => forwardedFrom({ headers: { 'toolway-client': notes[0] } }, membership)
  const [wall, tick] = [Date.now(), systemClock.monotonic()]
  const setClocks = (wallMs: number, monotonicMs: number) => {
    vi.spyOn(Date, 'now').mockReturnValue(wall + wallMs)
    vi.spyOn(systemClock, 'monotonic').mockReturnValue(tick + monotonicMs)
  }
  try {
    expect(read()).toMatchObject({ hops: 1 })
    setClocks(86_400_000, 5)
    expect(read()).toMatchObject({ hops: 1 })
    setClocks(-86_400_000, 5)
    expect(read()).toMatchObject({ hops: 1 })
    setClocks(61_000, 61_000)
    expect(read()).toBeUndefined()
  } finally {
    vi.restoreAllMocks()
  }
})

import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { json, result, type Script, stream } from '../../../tests/fixtures/rogue-http.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { requestBytes } from '../../wire/message.ts'
import { call, countingClock, onPost, opened, quick, rogue, serving, thrown } from './http.fixture.ts'
import { ask } from './receiver.fixture.ts'

describe('sessions', () => {
  test.each(['s'.repeat(2_000), 'with space'])(
    'G2: an invalid session id is named when requests without it are rejected',
    async (session) => {
      const { transport } = await rogue(
        onPost((_, response) => response.writeHead(400).end('No valid session ID provided')),
        { session },
      )
      expect(await thrown(call(transport))).toMatchObject({
        code: 'SERVER_UNAVAILABLE',
        message: expect.stringMatching(/invalid Mcp-Session-Id.*HTTP 400/),
      })
    },
  )

  test.each([404, 400])(
    'G3, F12: HTTP %i to a session ends it: the call may have run, those that follow were not sent',
    async (status) => {
      const { server, transport, heard } = await rogue(
        onPost((_, response) => response.writeHead(status).end('No valid session ID provided')),
      )
      const error = await thrown(call(transport))
      expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { sessionEnded: 'fresh' } })
      expect(error.details.unsent).toBeUndefined()
      expect(await heard.down).toMatchObject({
        code: 'SERVER_UNAVAILABLE',
        message: expect.stringContaining('ended the session'),
      })
      expect(await thrown(call(transport, 2))).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
      await transport[Symbol.asyncDispose]()
      expect(server.got.some(({ method }) => method === 'DELETE')).toBe(false)
      expect(heard.downs).toBe(1)
    },
  )

  test.each([
    [true, true],
    [false, undefined],
  ])(
    'F12: a request to an established session that is safe to repeat: %s may be resent: %s',
    async (repeatable, may) => {
      const { transport, heard } = await rogue(
        onPost((got, response) =>
          got.message?.id === 1 ? json(response, result(1)) : response.writeHead(404).end('no such session'),
        ),
      )
      await ask(transport, heard, 1, 'tools/list')
      const again = transport.send({ body: requestBytes(2, 'tools/call'), exchange: 2, repeatable })
      const { code, details } = await thrown(again)
      expect([code, details.sessionEnded, details.resendable]).toEqual(['OUTCOME_UNKNOWN', 'established', may])
    },
  )

  test('F12: where no connection is left, a session is checked before a call that must not run twice is sent', async () => {
    let restarted = false
    const { server, transport, heard } = await rogue(
      onPost((got, response) =>
        restarted ? response.writeHead(404).end('no such session') : json(response, result(got.message?.id)),
      ),
    )
    const hangUp = async () => {
      server.hangUp()
      await expect.poll(() => server.connections()).toBe(0)
    }
    await ask(transport, heard, 1, 'tools/list')
    await hangUp()
    await ask(transport, heard, 2, 'tools/call')
    await hangUp()
    restarted = true
    const error = await thrown(call(transport, 3))
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
    const methods = server.got.flatMap(({ message }) => message?.method ?? [])
    expect(methods.slice(-4)).toEqual(['tools/list', 'ping', 'tools/call', 'ping'])
  })

  test('F12: all calls that a lost session refuses get the same error: they may have run', async () => {
    const waiting: (() => void)[] = []
    const { server, transport } = await rogue(
      onPost((_, response) => {
        waiting.push(() => response.writeHead(404).end('no such session'))
        if (waiting.length === 3) for (const refuse of waiting) refuse()
      }),
    )
    const calls = [1, 2, 3].map((exchange) => thrown(call(transport, exchange)))
    await server.until(({ message }) => message?.id === 3)
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { sessionEnded: 'fresh' } })
    }
  })

  test('F12: a 404 with a JSON-RPC error for the request ends the session, too', async () => {
    const { transport, heard } = await rogue(
      onPost((_, response) =>
        json(response, '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}', 404),
      ),
    )
    expect(await thrown(call(transport))).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { sessionEnded: 'fresh' } })
    expect(await heard.down).toMatchObject({ message: expect.stringContaining('ended the session') })
    expect(heard.heard.map(({ kind }) => kind)).toEqual(['response'])
  })

  const notFound = (id: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'Session not found' } })
  const lostForms: Record<string, Script> = {
    'HTTP 400 with the id of the request': (got, response) => json(response, notFound(got.message?.id), 400),
    'HTTP 401': (_, response) => response.writeHead(401).end('Unauthorized: Session not found'),
    'HTTP 403': (_, response) => response.writeHead(403).end(),
    'HTTP 410': (_, response) => response.writeHead(410).end('Gone'),
    'HTTP 422': (_, response) => response.writeHead(422).end('expect initialize request'),
    'HTTP 500': (_, response) => response.writeHead(500).end(),
    'an error in a 200': (got, response) => json(response, notFound(got.message?.id)),
    'an error in a stream': (got, response) => stream(response).end(`data: ${notFound(got.message?.id)}\n\n`),
  }

  /** A server with sessions that can be restarted and then rejects the old session, or everything. */
  async function restartable(reject: Script, { rejectsAll = false } = {}) {
    let opened = 0
    let restarted = false
    let skippedMs = 0
    const clock: Clock = { ...quick, monotonic: () => quick.monotonic() + skippedMs }
    const setup = await rogue(
      onPost((got, response, socket) =>
        restarted ? reject(got, response, socket) : json(response, result(got.message?.id)),
      ),
      { session: () => (restarted && rejectsAll ? undefined : `session-${++opened}`), clock },
    )
    await ask(setup.transport, setup.heard, 1, 'tools/list')
    const requests = () => setup.server.got.flatMap(({ message, method }) => message?.method ?? method)
    const restart = () => {
      restarted = true
      skippedMs += 10_000
    }
    const skip = (ms: number) => {
      skippedMs += ms
    }
    return { ...setup, requests, restart, skip }
  }

  test.each(Object.entries(lostForms))(
    'T5, F12: a session that the server has lost ends, and only a repeatable request may be resent: %s',
    async (_, reject) => {
      for (const repeatable of [true, false]) {
        const { transport, heard, restart, server, requests } = await restartable(reject)
        restart()
        const sent = transport.send({ body: requestBytes(2, 'tools/call'), exchange: 2, repeatable })
        const error = (await thrown(sent)) ?? (await heard.failure(2))
        expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { sessionEnded: 'established' } })
        expect([error.details.resendable, transport.usable]).toEqual([repeatable || undefined, false])
        await server.until(({ method }) => method === 'DELETE')
        expect(server.got.find(({ method }) => method === 'DELETE')?.headers['mcp-session-id']).toBe('session-2')
        expect(requests().filter((method) => method === 'initialize')).toHaveLength(2)
        expect(requests().filter((method) => method === 'tools/call')).toHaveLength(1)
      }
    },
  )

  test('F12: a lost session that is rejected with 401 is noticed before a call that must not run twice is sent', async () => {
    const { transport, server, restart, requests } = await restartable(lostForms['HTTP 401'] as Script)
    server.hangUp()
    await expect.poll(() => server.connections()).toBe(0)
    restart()
    expect(await thrown(call(transport, 2))).toMatchObject({ details: { unsent: true } })
    expect(requests()).not.toContain('tools/call')
  })

  test.each([401, 403])(
    'T5: HTTP %i to everything is about the credential: the session continues, and is checked once in ten seconds',
    async (status) => {
      const { transport, restart, skip, requests, server } = await restartable(
        (_, response) => response.writeHead(status).end('Unauthorized'),
        { rejectsAll: true },
      )
      restart()
      for (const exchange of [2, 3, 4]) {
        expect(await thrown(call(transport, exchange))).toMatchObject({
          code: 'SERVER_UNAVAILABLE',
          message: expect.stringContaining('rejected the credential'),
        })
      }
      expect(requests().filter((method) => method === 'initialize')).toHaveLength(2)
      skip(10_000)
      await thrown(call(transport, 5))
      expect(requests().filter((method) => method === 'initialize')).toHaveLength(3)
      expect([transport.usable, server.got.some(({ method }) => method === 'DELETE')]).toEqual([true, false])
    },
  )

  test('T5: a rejection of one call does not end a session in which the server still lists its tools', async () => {
    const { transport, heard, restart, requests } = await restartable((got, response) =>
      got.message?.method === 'tools/call'
        ? json(response, notFound(got.message.id), 403)
        : json(response, result(got.message?.id)),
    )
    restart()
    await call(transport, 2)
    expect([heard.heard.at(-1)?.kind, transport.usable]).toEqual(['error', true])
    expect(requests().filter((method) => method === 'initialize')).toHaveLength(1)
  })

  test('T5: a session that was just opened is not checked, so that a server that always rejects is not asked endlessly', async () => {
    const { transport, server } = await rogue(onPost((_, response) => response.writeHead(403).end()))
    expect(await thrown(call(transport))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(server.got.filter(({ message }) => message?.method === 'initialize')).toHaveLength(1)
  })

  test('G3: HTTP 400 to one request is about that request: the session continues', async () => {
    const { transport, heard } = await rogue(onPost((_, response) => response.writeHead(400).end('bad request')))
    expect(await thrown(call(transport))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(transport.usable).toBe(true)
    await transport[Symbol.asyncDispose]()
    expect(heard.downs).toBe(0)
  })

  test('G3: a server of the official SDK that was restarted does not know the session, in its own words', async () => {
    const said = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}'
    const { transport } = await rogue(onPost((_, response) => json(response, said, 400)))
    const { details } = await thrown(call(transport))
    expect([details.sessionEnded, details.requestOnly, transport.usable]).toEqual(['fresh', undefined, false])
  })

  test.each([400, 404, 405])(
    'T5, F12: HTTP %i from a server without sessions ends the connection only if it rejects the handshake too',
    async (status) => {
      let replaced = false
      const server = await serving((got, response) => {
        const { method, id } = got.message ?? {}
        if (method === 'server/discover' && !replaced) return json(response, result(id))
        return response.writeHead(status).end('Bad Request: Missing session ID')
      })
      const { transport, heard } = await opened(server.url)
      await ask(transport, heard, 0, 'server/discover')
      transport.established('2026-07-28', 'modern')
      const { code, details } = await thrown(call(transport))
      expect([code, details.unsent, transport.usable]).toEqual(['SERVER_UNAVAILABLE', undefined, true])
      replaced = true
      expect(await thrown(call(transport, 2))).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
      expect(transport.usable).toBe(false)
      expect(await heard.down).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    },
  )

  test('F5, F12: a server without sessions that no longer supports the protocol revision is connected to again', async () => {
    let isSupported = true
    const refusal = (id: unknown) =>
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        error: { code: -32022, message: 'no', data: { supported: ['2099-01-01'] } },
      })
    const server = await serving((got, response) => {
      const { method, id } = got.message ?? {}
      if (method === 'server/discover' && isSupported) return json(response, result(id))
      return json(response, refusal(id), 400)
    })
    const { transport, heard } = await opened(server.url)
    await ask(transport, heard, 0, 'server/discover')
    transport.established('2026-07-28', 'modern')
    await call(transport)
    expect(heard.heard.at(-1)).toMatchObject({ kind: 'error', id: 1 })
    isSupported = false
    expect(await thrown(call(transport, 2))).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
    expect(transport.usable).toBe(false)
  })

  test('F12: calls in flight when a session ends may still be answered, and are OUTCOME_UNKNOWN otherwise', async () => {
    const answers: (() => void)[] = []
    const { server, transport, heard } = await rogue(
      onPost((got, response) => {
        const id = got.message?.id
        if (id === 3) return response.writeHead(404).end(() => answers[0]?.())
        stream(response)
        if (id === 1) answers.push(() => response.end(`data: ${result(1)}\n\n`))
      }),
    )
    await Promise.all([call(transport, 1), call(transport, 2)])
    await server.until(({ message }) => message?.id === 2)
    expect(await thrown(call(transport, 3))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await heard.down
    expect(heard.heard.at(-1)).toMatchObject({ kind: 'response', id: 1 })
    expect([...heard.failures].map(([exchange, { code }]) => [exchange, code])).toEqual([[2, 'OUTCOME_UNKNOWN']])
  })
})

describe("the server's own stream", () => {
  test('F4: messages outside requests arrive, and the stream is resumed after its last event', async () => {
    let opened = 0
    const { server, heard } = await rogue((got, response) => {
      if (got.method !== 'GET') return
      opened++
      const news = `id: n${opened}\ndata: {"jsonrpc":"2.0","method":"news/${opened}"}\n\n`
      if (opened === 1) stream(response).end(news)
      else stream(response).write(news)
    })
    const second = await heard.until((message) => message.kind === 'notification' && message.method === 'news/2')
    expect(second.exchange).toBeUndefined()
    const streams = server.got.filter(({ method }) => method === 'GET')
    expect(streams.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'n1'])
    expect(streams[0]?.headers).toMatchObject({ 'mcp-session-id': 'session-1', 'mcp-protocol-version': '2025-11-25' })
  })

  test.each([404, 405, 401])('protocol: a server that answers %i to GET is not asked again', async (status) => {
    const pauses: number[] = []
    const clock: Clock = {
      ...quick,
      after(ms, callback) {
        pauses.push(ms)
        return quick.after(ms, callback)
      },
    }
    const asked = Promise.withResolvers<void>()
    const { server, transport, heard } = await rogue(
      (got, response) => {
        if (got.method !== 'GET') return json(response, result(got.message?.id))
        response.writeHead(status).end(() => asked.resolve())
      },
      { clock },
    )
    await asked.promise
    await ask(transport, heard, 1, 'ping')
    await ask(transport, heard, 2, 'ping')
    expect(server.got.filter(({ method }) => method === 'GET')).toHaveLength(1)
    expect(pauses).not.toContain(1_000)
    expect(heard.downs).toBe(0)
  })

  test('F12: a server that does not know the session of its former stream was restarted: the connection is lost', async () => {
    let opened = 0
    const { heard, transport } = await rogue((got, response) => {
      if (got.method !== 'GET') return
      if (++opened === 1) stream(response).end(': hello\n\n')
      else response.writeHead(404).end()
    })
    expect(await heard.down).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(transport.usable).toBe(false)
  })

  test('F12: a server that rejects its former stream with 401 and has lost the session: the connection ends', async () => {
    let opened = 0
    let sessions = 0
    const clock: Clock = { ...quick, monotonic: () => quick.monotonic() * 1_000 }
    const { heard, server } = await rogue(
      (got, response) => {
        if (got.method === 'GET' && ++opened === 1) stream(response).end(': hello\n\n')
        else response.writeHead(401).end()
      },
      { session: () => `session-${++sessions}`, clock },
    )
    expect(await heard.down).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(server.got.filter(({ message }) => message?.method === 'initialize')).toHaveLength(2)
  })

  test('F12: a server that is too busy for its stream is asked again, in the time that it names', async () => {
    let asked = 0
    const pauses: number[] = []
    const clock: Clock = {
      ...quick,
      after(ms, callback) {
        pauses.push(ms)
        return quick.after(ms, callback)
      },
    }
    const { heard } = await rogue(
      (_, response) => {
        asked++
        if (asked === 1) return response.writeHead(503).end()
        if (asked === 2) return stream(response).end('retry: 1500\n\n')
        return stream(response).write('data: {"jsonrpc":"2.0","method":"news"}\n\n')
      },
      { clock },
    )
    await heard.until((message) => message.kind === 'notification')
    expect(pauses.filter((ms) => ms < 10_000)).toEqual([1_000, 1_500])
  })

  test('F12: a stream that always breaks is requested less and less often', async () => {
    const pauses: number[] = []
    const enough = Promise.withResolvers<void>()
    // Timers that are not pauses between attempts. They are not counted, and run at normal speed, so that they do not
    // fire.
    const isLimit = (ms: number) => ms === 10_000 || ms === 15_000
    const clock: Clock = {
      ...quick,
      after: (ms, callback) => {
        if (ms >= 1_000 && !isLimit(ms)) pauses.push(ms)
        if (pauses.length === 7) enough.resolve()
        return systemClock.after(isLimit(ms) ? ms : ms / 10_000, callback)
      },
    }
    await rogue((_, response) => stream(response).end(), { clock })
    await enough.promise
    expect(pauses.slice(0, 7)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  })
})

describe('ending', () => {
  test('F10: an aborted call closes its stream, and nothing else', async () => {
    const closed = Promise.withResolvers<void>()
    const { server, transport, heard } = await rogue(
      onPost((got, response) => {
        if (got.message?.id === 2) return json(response, result(2))
        stream(response).once('close', () => closed.resolve())
      }),
    )
    const controller = new AbortController()
    await call(transport, 1, controller.signal)
    controller.abort(new Error('enough'))
    await closed.promise
    await ask(transport, heard, 2, 'ping')
    expect([heard.failures.size, heard.downs, server.got.length > 0]).toEqual([0, 0, true])
  })

  test('F10: an aborted call that has no answer yet rejects with the reason and closes its connection', async () => {
    const closed = Promise.withResolvers<void>()
    const { server, transport } = await rogue(onPost((_, response) => response.once('close', () => closed.resolve())))
    const controller = new AbortController()
    const sending = thrown(call(transport, 1, controller.signal))
    await server.until(({ message }) => message?.id === 1)
    controller.abort(new Error('enough'))
    expect(await sending).toMatchObject({ message: 'enough' })
    await closed.promise
  })

  test('security: a server that keeps the stream of a response open is disconnected', async () => {
    const closed = Promise.withResolvers<void>()
    const { transport, heard } = await rogue(
      onPost((got, response) => {
        stream(response).write(`data: ${result(got.message?.id)}\n\n`)
        response.once('close', () => closed.resolve())
      }),
    )
    await ask(transport, heard, 1, 'ping')
    await closed.promise
    expect(heard.failures.size).toBe(0)
  })

  test('security: a response without end that is not needed does not keep its connection', async () => {
    const clock = createManualClock()
    const closed = Promise.withResolvers<void>()
    const { transport } = await rogue(
      onPost((_, response) => {
        response.once('close', () => closed.resolve()).writeHead(202)
        response.write(' ')
      }),
      { clock },
    )
    await transport.send({ body: Buffer.from('{"jsonrpc":"2.0","method":"notifications/cancelled"}') })
    clock.advance(10_000)
    await closed.promise
  })

  test('security: disposing closes every stream and connection without an event, and ends the session', async () => {
    const clock = countingClock()
    const { server, transport, heard } = await rogue(
      (got, response) => {
        if (got.method === 'GET' || got.message?.id === 1) stream(response)
      },
      { clock },
    )
    await call(transport, 1)
    const silent = thrown(call(transport, 2))
    await server.until(({ message }) => message?.id === 2)
    await server.until(({ method }) => method === 'GET')
    await Promise.all([transport[Symbol.asyncDispose](), transport[Symbol.asyncDispose]()])
    expect(await silent).toBeInstanceOf(Error)
    expect(server.got.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
    await expect.poll(() => server.connections()).toBe(0)
    expect([heard.downs, heard.failures.size, clock.running]).toEqual([0, 0, 0])
    expect(await thrown(call(transport, 3))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test('security: a server that does not answer DELETE does not hold the disposal', async () => {
    const server = await serving((got, response) => {
      if (got.method === 'POST') json(response, result(got.message?.id), 200, { 'mcp-session-id': 'x' })
    })

    const { transport, heard } = await opened(server.url)
    await ask(transport, heard, 1, 'initialize')
    await transport[Symbol.asyncDispose]()
    expect(server.got.at(-1)?.method).toBe('DELETE')
  })
})

describe('B2: what the stateless protocol does not have', () => {
  const stateless = async (script: Script) => {
    const server = await serving((got, response, socket) => {
      const { method, id } = got.message ?? {}
      if (method !== 'server/discover') return script(got, response, socket)
      return json(response, result(id), 200, { 'mcp-session-id': 'made-up' })
    })
    const { transport, heard } = await opened(server.url)
    await ask(transport, heard, 0, 'server/discover')
    transport.established('2026-07-28', 'modern')
    return { server, transport, heard }
  }

  test('is not used: a session id is not sent back', async () => {
    const { server, transport } = await stateless((got, response) => json(response, result(got.message?.id)))
    await call(transport)
    await transport[Symbol.asyncDispose]()
    expect(server.got.map(({ method, headers }) => [method, headers['mcp-session-id']])).toEqual([
      ['POST', undefined],
      ['POST', undefined],
    ])
  })

  test('is not used: a stream that ends without a response is not resumed', async () => {
    const { server, transport, heard } = await stateless(
      (_, response) => void stream(response).end('id: 1\ndata: {}\n\n'),
    )
    await call(transport)
    expect(await heard.failure(1)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('without a response'),
    })
    expect(server.got.filter(({ method }) => method === 'GET')).toEqual([])
  })

  test('ends the call at once: a response that is announced for later', async () => {
    const { transport } = await stateless((_, response) => response.writeHead(202).end())
    expect(await thrown(call(transport))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})

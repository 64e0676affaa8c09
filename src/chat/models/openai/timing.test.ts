import { describe, expect, test } from 'vitest'
import type { KeptLog } from '../../../../tests/fixtures/log.ts'
import { until } from '../../../../tests/fixtures/until.ts'
import { failure, hello, patient, serving, timeouts } from '../model.fixture.ts'
import { collectAnswer, type Delta, type Model } from '../model.ts'
import { events, ignores, piece, refuses, says, send, stalls } from '../server.fixture.ts'

const ask = (model: Model) => collectAnswer(model.complete({ messages: hello, signal: patient() }))

describe('a server that is busy', () => {
  test.each([429, 503])('S6: %i is waited for as long as it asks', async (status) => {
    const { server, model, clock, log } = await serving([
      refuses(status, 'slow down', { 'retry-after': '3' }),
      says('now'),
    ])
    const answer = ask(model)
    await server.request(1)
    await waiting(log)
    clock.advance(2_999)
    expect(server.asked).toHaveLength(1)
    clock.advance(1)
    expect((await answer).text).toBe('now')
    expect(clock.pending).toBe(0)
  })

  test('S6: a server that stays busy is an error with the delay', async () => {
    const { server, model, clock, log } = await serving([refuses(429, 'slow down', { 'retry-after-ms': '1500' })])
    const error = failure(ask(model))
    for (const number of [1, 2]) {
      await server.request(number)
      await waiting(log, number)
      clock.advance(1_500)
    }
    expect(await error).toMatchObject({
      code: 'OVERLOADED',
      details: { retryAfterMs: 1_500 },
      message: expect.stringContaining('in 2 s'),
    })
    expect(server.asked).toHaveLength(3)
  })

  test('S6: a delay beyond the limit is not waited for', async () => {
    const { server, model } = await serving([refuses(503, 'restarting', { 'retry-after': '3600' })])
    expect(await failure(ask(model))).toMatchObject({ code: 'OVERLOADED', details: { retryAfterMs: 3_600_000 } })
    expect(server.asked).toHaveLength(1)
  })

  test('S6: an abort ends the wait', async () => {
    const { server, model, clock, log } = await serving([refuses(429, 'slow down', { 'retry-after': '9' })])
    const controller = new AbortController()
    const error = failure(collectAnswer(model.complete({ messages: hello, signal: controller.signal })))
    await server.request(1)
    await waiting(log)
    controller.abort(new Error('enough'))
    expect((await error).message).toBe('enough')
    expect(clock.pending).toBe(0)
  })
})

/** Until a busy server is waited for the nth time. */
const waiting = (log: KeptLog, times = 1) =>
  until(() => log.lines.filter(({ message }) => message.includes('busy')).length === times, { what: 'the wait' })

describe('a server that is slow', () => {
  test('S6: a server that never answers is aborted after the step timeout', async () => {
    const { server, model, clock } = await serving([ignores])
    const error = failure(ask(model))
    const asked = await server.request(1)
    clock.advance(timeouts.step)
    expect(await error).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('within 20 s') })
    await asked.abandoned
    expect(clock.pending).toBe(0)
  })

  test('S6: a stalled stream is aborted after the chunk timeout', async () => {
    const { server, model, clock } = await serving([stalls('Once ', 'upon ')])
    const told: Delta[] = []
    const error = failure(
      (async () => {
        for await (const delta of model.complete({ messages: hello, signal: patient(), stream: true })) told.push(delta)
      })(),
    )
    await until(() => told.length === 2, { what: 'the beginning' })
    await until(() => clock.pending === 3, { what: 'the watch over the next piece' })
    clock.advance(timeouts.chunk)
    expect(await error).toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringContaining('stopped sending data within 5 s'),
    })
    await (await server.request(1)).abandoned
    expect(clock.pending).toBe(0)
  })

  test('S6: a server that stalls after its finish reason has finished', async () => {
    const { server, model, clock } = await serving([
      (_asked, response) => {
        events(response)
        send(response, piece('Once.', 'stop'))
      },
    ])
    const answer = collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    await until(() => clock.pending === 3, { what: 'the watch over the next piece' })
    clock.advance(2_000)
    expect(await answer).toMatchObject({ text: 'Once.', reason: 'stop' })
    await (await server.request(1)).abandoned
    expect(clock.pending).toBe(0)
  })

  test('S6: comments after the finish reason do not prolong the answer', async () => {
    let comment = (): void => {}
    const { model, clock } = await serving([
      (_asked, response) => {
        events(response)
        send(response, piece('Once.', 'stop'))
        comment = () => void response.write(': ping\n\n')
      },
    ])
    let text: string | undefined
    const answer = collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true })).then((ended) => {
      text = ended.text
    })
    await until(() => clock.pending === 3, { what: 'the watch over the next piece' })
    for (let second = 0; second < 3; second++) {
      comment()
      await new Promise((resolve) => setTimeout(resolve, 50))
      clock.advance(1_000)
    }
    await until(() => text === 'Once.', { what: 'the answer to end' })
    await answer
  })

  test('S6: an abort after the finish reason still ends the request', async () => {
    const { model } = await serving([
      (_asked, response) => {
        events(response)
        send(response, piece('Once.', 'stop'))
      },
    ])
    const controller = new AbortController()
    const error = failure(
      (async () => {
        for await (const _ of model.complete({ messages: hello, signal: controller.signal, stream: true }))
          controller.abort(new Error('stop'))
      })(),
    )
    expect((await error).message).toBe('stop')
  })

  test('S6: a slow reader does not count as a stalled server', async () => {
    const { model, clock } = await serving([says('slowly read')])
    const texts: string[] = []
    for await (const delta of model.complete({ messages: hello, signal: patient(), stream: true })) {
      clock.advance(timeouts.chunk / 2)
      if (delta.kind === 'text') texts.push(delta.text)
    }
    expect(texts.join('')).toBe('slowly read')
  })

  test('S6: all attempts share the total timeout', async () => {
    const busy = refuses(503, 'x', { 'retry-after': '20' })
    const { server, model, clock, log } = await serving([busy, busy, ignores])
    const error = failure(ask(model))
    for (const number of [1, 2]) {
      await server.request(number)
      await waiting(log, number)
      clock.advance(20_000)
    }
    await server.request(3)
    clock.advance(timeouts.total - 40_000)
    expect(await error).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('within 60 s') })
  })
})

describe('cancellation', () => {
  test('S6: an abort before the answer reaches the server', async () => {
    const { server, model, clock } = await serving([ignores])
    const controller = new AbortController()
    const error = failure(collectAnswer(model.complete({ messages: hello, signal: controller.signal })))
    const asked = await server.request(1)
    controller.abort(new Error('never mind'))
    expect((await error).message).toBe('never mind')
    await asked.abandoned
    expect(clock.pending).toBe(0)
  })

  test('S6: an abort in the middle of an answer reaches the server', async () => {
    const { server, model } = await serving([stalls('Once ')])
    const controller = new AbortController()
    const error = failure(
      (async () => {
        for await (const _ of model.complete({ messages: hello, signal: controller.signal, stream: true }))
          controller.abort(new Error('stop'))
      })(),
    )
    expect((await error).message).toBe('stop')
    await (await server.request(1)).abandoned
  })

  test('S6: the request is cancelled when the reader stops', async () => {
    const { server, model, clock } = await serving([stalls('Once ')])
    for await (const _ of model.complete({ messages: hello, signal: patient(), stream: true })) break
    await (await server.request(1)).abandoned
    expect(clock.pending).toBe(0)
  })

  test('S6: an aborted request is not sent', async () => {
    const { server, model } = await serving([says('x')])
    const error = await failure(
      collectAnswer(model.complete({ messages: hello, signal: AbortSignal.abort(new Error('too late')) })),
    )
    expect([error.message, server.asked.length]).toEqual(['too late', 0])
  })
})

import { describe, expect, test, vi } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { startProxy } from '../../../tests/fixtures/proxy.ts'
import { bodyOf, refusalOf, runTool } from '../access.fixture.ts'
import type { Tool } from '../define-tool.ts'
import { key, openai, over, tools } from './inference.fixture.ts'
import { answers, mp3, sends } from './model-server.fixture.ts'

describe('model servers that fail', () => {
  const failing = (status: number, message = '', headers = {}) =>
    over({ '/audio/speech': answers(status, { error: { message } }, headers) })

  test.each([
    [401, 'SERVER_UNAVAILABLE', 'models.local.apiKey'],
    [404, 'SERVER_UNAVAILABLE', 'native.inference.speech'],
    [302, 'SERVER_UNAVAILABLE', 'not followed'],
    [400, 'INVALID_ARGUMENTS', 'It says: bad voice'],
    [500, 'SERVER_UNAVAILABLE', 'the log of the server at http://127.0.0.1'],
    [500, 'SERVER_UNAVAILABLE', 'It says: bad voice'],
    [429, 'OVERLOADED', 'Try again later'],
    [529, 'OVERLOADED', 'Try again later'],
  ])('F17: HTTP %i is an error that says what to do', async (status, code, words) => {
    await using model = await failing(status, 'bad\n voice', { location: 'http://127.0.0.1:9/' })
    const refusal = await refusalOf(model.run('speech', { text: 'x' }))
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(words) })
    expect(model.asked).toHaveLength(1)
  })

  test('B6: the key is in no error, even when the server repeats it', async () => {
    for (const status of [400, 401, 500]) {
      await using model = await failing(status, `the key ${key} is wrong`)
      expect((await refusalOf(model.run('speech', { text: 'x' }))).message).not.toContain(key)
    }
  })

  test('B6: a key in the query of a URL is in no error', async () => {
    await using model = await failing(400, 'no route for ?api-key=q-secret-7')
    const written = { local: { ...openai, baseUrl: `${model.baseUrl}?api-key=q-secret-7` } }
    const { message } = await refusalOf(runTool(tools({ written }).speech as Tool, { text: 'x' }))
    expect(message).toContain('?api-key=***')
  })

  test('F17: a busy server may name the time of the next attempt as a date', async () => {
    const clock = createManualClock(Date.parse('2026-11-03T12:00:00Z'))
    const headers = { 'retry-after': 'Tue, 03 Nov 2026 12:00:05 GMT' }
    await using model = await over({ '/audio/speech': answers(503, {}, headers) }, { clock })
    const refusal = await refusalOf(model.run('speech', { text: 'x' }))
    expect(refusal).toMatchObject({ code: 'OVERLOADED', details: { retryAfterMs: 5_000 } })
    expect(refusal.message).toContain('Try again in 5 s.')
  })

  test('G1: a server behind a company proxy is reached through it, and errors of the proxy are reported', async () => {
    await using model = await over({ '/audio/speech': sends('audio/mpeg', mp3) })
    const baseUrl = model.baseUrl.replace('127.0.0.1', 'models.invalid')
    const speak = () => runTool(tools({ written: { a: { ...openai, baseUrl } } }).speech as Tool, { text: 'x' })
    const proxy = await startProxy()
    try {
      vi.stubEnv('HTTP_PROXY', proxy.url)
      expect(bodyOf(await speak()).content).toMatchObject([{ mimeType: 'audio/mpeg' }])
      expect(proxy.asked).toHaveLength(1)
      await proxy[Symbol.asyncDispose]()
      expect((await refusalOf(speak())).message).toContain('Check HTTP_PROXY, or add models.invalid to NO_PROXY')
    } finally {
      vi.unstubAllEnvs()
    }
  })

  test('F17: more than allowed is not taken', async () => {
    const large = Buffer.concat([mp3, Buffer.alloc(5_000)])
    await using model = await over({ '/audio/speech': sends('audio/mpeg', large) }, { inference: { maxBytes: '4KiB' } })
    expect((await refusalOf(model.run('speech', { text: 'x' }))).message).toContain('more than 4096 bytes')
  })

  test('F10: cancelling closes the connection to the server', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const stop = new AbortController()
    await using model = await over({
      '/audio/speech': (_asked, response) => {
        response.on('close', resolve)
        stop.abort(new Error('enough'))
      },
    })
    await expect(model.run('speech', { text: 'x' }, { signal: stop.signal })).rejects.toThrow('enough')
    await closed
  })

  test('F17: an unreachable server and an interrupted response are errors that say so', async () => {
    const made = tools({ written: { local: openai } })
    expect((await refusalOf(runTool(made.speech as Tool, { text: 'x' }))).message).toContain('models.local.baseUrl')
    await using model = await over({
      '/audio/speech': (_asked, response) => {
        response.writeHead(200, { 'content-type': 'audio/mpeg', 'content-length': '1000' }).write('ID3')
        setImmediate(() => response.socket?.destroy())
      },
    })
    expect((await refusalOf(model.run('speech', { text: 'x' }))).message).toContain('closed the connection')
  })
})

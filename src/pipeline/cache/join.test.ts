import { describe, expect, test, vi } from 'vitest'
import { entryOf } from '../../core/call.fixture.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import {
  answerOf,
  asking,
  farStore,
  heldBack,
  openCache,
  openHeldBack,
  readTool,
  settled,
  textOf,
} from './cache.fixture.ts'

const answer = answerOf({ content: [{ type: 'text', text: 'the answer' }] })
const cancelled = () => new ToolwayError('CANCELLED', 'The caller cancelled this call.')

describe('F13: identical calls in flight are joined', () => {
  test('a hundred run once, and all get the one answer', async () => {
    const { handle, held, last, stats, clock } = openHeldBack()
    const all = Array.from({ length: 100 }, () => handle(asking({ args: { path: 'a' } })))
    await settled()
    expect(held).toHaveLength(1)
    last().answer(answer)
    const results = await Promise.all(all)
    expect(new Set(results.map(textOf))).toEqual(new Set(['the answer']))
    expect(results.map(({ cached }) => cached)).toEqual([undefined, ...Array(99).fill(true)])
    expect(stats()).toMatchObject({ hits: 0, misses: 1, joined: 99, entries: 1 })
    expect(clock.pending).toBe(0)
  })

  test('calls with other arguments or of other agents are not', async () => {
    const { handle, held } = openHeldBack()
    for (const args of [{ path: 'a' }, { path: 'b' }]) void handle(asking({ args }))
    void handle(asking({ args: { path: 'a' }, caller: { agent: 'other' } }))
    await settled()
    expect(held).toHaveLength(3)
  })

  test('a call that refreshes runs alone; the result of an earlier call does not replace its result', async () => {
    const { handle, held } = openHeldBack()
    const before = handle(asking())
    const fresh = handle(asking({ meta: { 'dev.toolway/cache': 'refresh' } }))
    await settled()
    expect(held).toHaveLength(2)
    held[1]?.answer(answerOf({ content: [{ type: 'text', text: 'fresh' }] }))
    await fresh
    held[0]?.answer(answer)
    expect(textOf(await before)).toBe('the answer')
    expect(textOf(await handle(asking()))).toBe('fresh')
  })

  test('not after the server was said to have changed', async () => {
    const { handle, held, invalidate } = openHeldBack()
    void handle(asking())
    await settled()
    invalidate('files')
    void handle(asking())
    await settled()
    expect(held).toHaveLength(2)
  })

  test('a result that is not cached is still returned to all waiting callers', async () => {
    const { handle, last, runs } = openHeldBack()
    const all = [handle(asking()), handle(asking())]
    await settled()
    last().answer(answerOf({ isError: true, content: [{ type: 'text', text: 'no' }] }))
    expect((await Promise.all(all)).map(({ isError }) => isError)).toEqual([true, true])
    expect(runs).toHaveLength(1)
  })
})

describe('F13: joined callers are independent', () => {
  test('a caller that cancels does not affect the others, even if it was the first', async () => {
    const { handle, last, runs } = openHeldBack()
    const controllers = [0, 1, 2].map(() => new AbortController())
    const all = controllers.map(({ signal }) => handle(asking({ signal })))
    await settled()
    controllers[0]?.abort(cancelled())
    controllers[1]?.abort(cancelled())
    await expect(all[0]).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(all[1]).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(last().call.signal.aborted).toBe(false)
    last().answer(answer)
    expect(textOf((await all[2]) as typeof answer)).toBe('the answer')
    expect(runs).toHaveLength(1)
  })

  test('when all callers have left, the call is cancelled, and the next one starts another', async () => {
    const { handle, held } = openHeldBack()
    const controllers = [0, 1].map(() => new AbortController())
    const all = controllers.map(({ signal }) => handle(asking({ signal })))
    await settled()
    for (const controller of controllers) controller.abort(cancelled())
    await Promise.allSettled(all)
    expect(held[0]?.call.signal).toMatchObject({ aborted: true, reason: { code: 'CANCELLED' } })
    void handle(asking())
    await settled()
    expect(held).toHaveLength(2)
  })

  test('a call that is already cancelled starts nothing', async () => {
    const { handle, held } = openHeldBack()
    await expect(handle(asking({ signal: AbortSignal.abort(cancelled()) }))).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    expect(held).toHaveLength(0)
  })

  test('a caller that joined has its own deadline', async () => {
    const { handle, last, clock } = openHeldBack()
    const long = handle(asking({ timeoutMs: 20_000 }))
    await clock.pass(1_000)
    const short = expect(handle(asking({ timeoutMs: 2_000 }))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await clock.pass(2_000)
    await short
    last().answer(answer)
    expect(textOf(await long)).toBe('the answer')
    expect(clock.pending).toBe(0)
  })

  test('if the timeout of the first was too short, a caller with more time starts another call and the others join it', async () => {
    const { handle, held, last, clock } = openHeldBack()
    const short = expect(handle(asking({ timeoutMs: 1_000 }))).rejects.toMatchObject({ code: 'TIMEOUT' })
    const long = [handle(asking()), handle(asking())]
    await clock.pass(1_000)
    await short
    await settled()
    expect(held).toHaveLength(2)
    last().answer(answer)
    expect((await Promise.all(long)).map(textOf)).toEqual(['the answer', 'the answer'])
  })

  test('a caller with no more time than the failed call does not try again', async () => {
    const { handle, held, clock } = openHeldBack()
    const first = expect(handle(asking())).rejects.toMatchObject({ code: 'TIMEOUT' })
    await clock.pass(1)
    const second = expect(handle(asking())).rejects.toMatchObject({ code: 'TIMEOUT' })
    await clock.pass(30_000)
    await first
    await second
    expect(held).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  test('a second attempt ends with the deadline that its caller had from the beginning', async () => {
    const { handle, held, clock } = openHeldBack()
    const short = expect(handle(asking({ timeoutMs: 1_000 }))).rejects.toMatchObject({ code: 'TIMEOUT' })
    const long = expect(handle(asking({ timeoutMs: 5_000 }))).rejects.toMatchObject({ code: 'TIMEOUT' })
    await clock.pass(1_000)
    await short
    await clock.pass(4_000)
    await long
    expect(held.map(({ call }) => call.signal.aborted)).toEqual([true, true])
  })
})

describe('F13: failures', () => {
  test('an error of the server is returned to all waiting callers', async () => {
    const { handle, last, runs } = openHeldBack()
    const all = [handle(asking()), handle(asking())]
    await settled()
    const error = new ServerError(Json.of({ code: -32000, message: 'no' }))
    last().fail(error)
    expect(await Promise.allSettled(all)).toEqual(Array(2).fill({ status: 'rejected', reason: error }))
    expect(runs).toHaveLength(1)
  })

  test('an error that is meant for one caller is not shared', async () => {
    const { handle, held } = openHeldBack()
    const all = [handle(asking()), handle(asking())]
    await settled()
    const error = new ServerError(Json.of({ code: -32042, message: 'open this', data: { elicitations: [] } }))
    held[0]?.fail(error)
    await expect(all[0]).rejects.toBe(error)
    await settled()
    held[1]?.answer(answer)
    expect(textOf((await all[1]) as typeof answer)).toBe('the answer')
  })
})

test('progress reaches all waiting callers, other notifications only the first', async () => {
  const { handle, last } = openHeldBack()
  const controller = new AbortController()
  const heard = [vi.fn(), vi.fn()]
  const all = heard.map((notify, index) =>
    handle(
      asking({ peer: { notify }, meta: { progressToken: index }, ...(index === 0 && { signal: controller.signal }) }),
    ),
  )
  await settled()
  const { peer } = last().call
  peer.notify('notifications/progress', Json.of({ progress: 1 }))
  peer.notify('notifications/message', Json.of({ level: 'info' }))
  expect(heard.map(({ mock }) => mock.calls.length)).toEqual([2, 1])
  controller.abort(cancelled())
  await all[0]?.catch(() => {})
  peer.notify('notifications/progress', Json.of({ progress: 2 }))
  peer.notify('notifications/message', Json.of({ level: 'info' }))
  expect(heard.map(({ mock }) => mock.calls.length)).toEqual([2, 2])
  last().answer(answer)
  await all[1]
})

test('F13: resources are joined once their server has said that they may be kept', async () => {
  const { handle, held } = openHeldBack()
  const entry = readTool({ kind: 'resource', name: 'file:///a' })
  const two = () => [1, 2].map(() => handle(asking({ entry, uri: 'file:///a' })))
  const first = two()
  await settled()
  expect(held).toHaveLength(2)
  for (const { answer: say } of held) say(answerOf({ contents: [], ttlMs: 1, cacheScope: 'public' }))
  await Promise.all(first)
  const other = [1, 2].map(() => handle(asking({ entry, uri: 'file:///b' })))
  await settled()
  expect(held).toHaveLength(3)
  held[2]?.answer(answer)
  await settled()
  held[3]?.answer(answer)
  await Promise.all(other)
})

test('F13: a store that takes a moment changes nothing', async () => {
  const { handle, does, runs, stats } = openCache({}, farStore())
  const { held, run } = heldBack()
  does(run)
  const all = Array.from({ length: 10 }, () => handle(asking()))
  await settled()
  await settled()
  expect(held).toHaveLength(1)
  held[0]?.answer(answer)
  expect((await Promise.all(all)).map(textOf)).toEqual(Array(10).fill('the answer'))
  await settled()
  expect(textOf(await handle(asking()))).toBe('the answer')
  does(async () => answer)
  await handle(asking({ entry: entryOf({ name: 'write' }) }))
  await handle(asking())
  expect(runs).toHaveLength(3)
  expect(stats()).toMatchObject({ hits: 1, misses: 2, joined: 9 })
})

test('B9: a joined call counts as passed to the server, because the call that it joined may have been', async () => {
  const { handle, last } = openHeldBack()
  let started = 0
  const starting = () => {
    started++
  }
  const first = handle(asking({ args: { path: 'a' } }))
  await settled()
  const joined = handle({ ...asking({ args: { path: 'a' } }), starting })
  await settled()
  expect(started).toBe(1)
  last().answer(answer)
  await Promise.all([first, joined])
})

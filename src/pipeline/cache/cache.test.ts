import { describe, expect, test } from 'vitest'
import { entryOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { answerOf, asking, openCache, readTool, textOf } from './cache.fixture.ts'

const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

test('F13: the same call is answered from what is kept, byte for byte, and says so', async () => {
  const { handle, runs, does, stats } = openCache()
  const bytes = Buffer.from('{ "content" : [ {"type":"text","text":"\\u00e9"} ], "x":9007199254740993 }')
  does(async () => ({ body: Json.raw(bytes), isError: false }))
  const first = await handle(asking({ args: { path: 'a' } }))
  const second = await handle(asking({ args: { path: 'a' } }))
  expect(first.cached).toBeUndefined()
  expect(second).toMatchObject({ cached: true, isError: false })
  expect(second.body.bytes).toEqual(bytes)
  expect(runs).toHaveLength(1)
  expect(stats()).toMatchObject({ hits: 1, misses: 1, joined: 0, entries: 1, evicted: 0 })
})

test('F13: changing a cached result that was returned does not change it for others', async () => {
  const { handle } = openCache()
  await handle(asking())
  const hit = await handle(asking())
  ;(hit.body.value as Record<string, unknown>).content = 'spoilt'
  expect(textOf(await handle(asking()))).toBe('answer 1')
})

test('F13: without cache.enabled every call runs', async () => {
  const { handle, runs } = openCache({ cache: { enabled: false } })
  for (const _ of [1, 2]) await handle(asking())
  expect(runs).toHaveLength(2)
})

test('F13: a result is kept for the configured time, without a timer', async () => {
  const { handle, runs, clock } = openCache({ cache: { ttl: '10s' } })
  await handle(asking())
  expect(clock.pending).toBe(0)
  clock.advance(9_999)
  await handle(asking())
  expect(runs).toHaveLength(1)
  clock.advance(1)
  await handle(asking())
  expect(runs).toHaveLength(2)
})

describe('F13: a server can shorten the time that its results are cached', () => {
  const kept = async (body: object, seconds: number, changes = {}) => {
    const { handle, runs, clock, does } = openCache({ cache: { ttl: '10s' } })
    does(async () => answerOf({ ...text('x'), ...body }))
    await handle(asking(changes))
    clock.advance(seconds * 1_000)
    await handle(asking(changes))
    return runs.length === 1
  }

  test('a shorter time is kept, a longer one is not', async () => {
    expect(await kept({ ttlMs: 5_000 }, 4.999)).toBe(true)
    expect(await kept({ ttlMs: 5_000 }, 5)).toBe(false)
    expect(await kept({ ttlMs: 60_000 }, 9.999)).toBe(true)
    expect(await kept({ ttlMs: 60_000 }, 10)).toBe(false)
  })

  test.each([[0], [-1], ['60000'], [null], [{}]])('a time of %j means that nothing is cached', async (ttlMs) => {
    expect(await kept({ ttlMs }, 0)).toBe(false)
  })

  test('only members at the top level of a result count', async () => {
    expect(await kept({ structuredContent: { ttlMs: 0, resultType: 'task', cacheScope: 'private' } }, 0)).toBe(true)
  })

  test('however the key is spelt', async () => {
    const { handle, runs, does } = openCache()
    does(async () => ({ body: Json.raw(Buffer.from('{"content":[],"ttl\\u004ds":0}')), isError: false }))
    for (const _ of [1, 2]) await handle(asking())
    expect(runs).toHaveLength(2)
  })
})

describe('F13: results that are not cached', () => {
  const runsOf = async (call: Parameters<typeof asking>[0], body: ResultBody = text('x'), changes = {}) => {
    const { handle, runs, does } = openCache(changes)
    does(async () => answerOf(body))
    for (const _ of [1, 2]) await handle(asking(call))
    return runs.length
  }

  test('a tool that says it failed', async () => {
    expect(await runsOf({}, { ...text('x'), isError: true })).toBe(2)
  })

  test.each(['input_required', 'task', 'of some extension'])('a result of the type %s', async (resultType) => {
    expect(await runsOf({}, { ...text('x'), resultType })).toBe(2)
    expect(await runsOf({}, { ...text('x'), resultType: 'complete' })).toBe(1)
  })

  test('a call that brings more than arguments: a task, answers to questions', async () => {
    expect(await runsOf({ rest: { task: { ttl: 1 } } })).toBe(2)
    expect(await runsOf({ rest: { inputResponses: {}, requestState: 'x' } })).toBe(2)
  })

  test('a result that would fill a large part of the cache', async () => {
    const cache = { maxBytes: '16KiB' }
    expect(await runsOf({}, text('x'.repeat(900)), { cache })).toBe(1)
    expect(await runsOf({}, text('x'.repeat(1_024)), { cache })).toBe(2)
  })

  test('arguments that are too long to be compared', async () => {
    expect(await runsOf({ args: { text: 'x'.repeat(60_000) } })).toBe(1)
    expect(await runsOf({ args: { text: 'x'.repeat(70_000) } })).toBe(2)
  })

  test('a failure', async () => {
    const { handle, runs, does } = openCache()
    does(async () => Promise.reject(new ToolwayError('SERVER_UNAVAILABLE', 'No.')))
    for (const _ of [1, 2]) await expect(handle(asking())).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(runs).toHaveLength(2)
  })
})

describe('F13: what the caller wants', () => {
  const wish = (value: unknown) => ({ meta: { 'dev.toolway/cache': value } })

  test('no-store: neither answered from what is kept, nor kept', async () => {
    const { handle, stats } = openCache()
    await handle(asking(wish('no-store')))
    expect(stats().entries).toBe(0)
    expect(textOf(await handle(asking()))).toBe('answer 2')
    expect(textOf(await handle(asking(wish('no-store'))))).toBe('answer 3')
    expect(textOf(await handle(asking()))).toBe('answer 2')
  })

  test('refresh: the server is asked again, and the result is cached for all', async () => {
    const { handle } = openCache()
    await handle(asking())
    expect(textOf(await handle(asking(wish('refresh'))))).toBe('answer 2')
    expect(textOf(await handle(asking()))).toBe('answer 2')
  })

  test('an unknown value counts as no-store', async () => {
    const { handle, runs } = openCache()
    for (const value of ['no-cache', null, true]) await handle(asking(wish(value)))
    expect(runs).toHaveLength(3)
  })
})

describe('F13: resources and prompts are kept only where their server says so', () => {
  const resource = readTool({ kind: 'resource', name: 'file:///a' })
  const runsOf = async (body: object, callers = ['ann', 'ann']) => {
    const { handle, runs, does } = openCache()
    does(async () => answerOf({ contents: [], ...body }))
    for (const principal of callers) {
      await handle(asking({ entry: resource, uri: 'file:///a', caller: { principal } }))
    }
    return runs.length
  }

  test('with ttlMs they are, otherwise they are not', async () => {
    expect(await runsOf({})).toBe(2)
    expect(await runsOf({ cacheScope: 'public' })).toBe(2)
    expect(await runsOf({ ttlMs: 1_000, cacheScope: 'public' })).toBe(1)
  })

  test('one without a scope is private', async () => {
    expect(await runsOf({ ttlMs: 1_000 }, ['ann', 'bob', 'ann', 'bob'])).toBe(2)
    expect(await runsOf({ ttlMs: 1_000, cacheScope: 'private' }, ['ann', 'bob', 'ann', 'bob'])).toBe(2)
    expect(await runsOf({ ttlMs: 1_000, cacheScope: 'public' }, ['ann', 'bob', 'ann', 'bob'])).toBe(1)
  })

  test('resources of one template are cached by their URI', async () => {
    const { handle, runs, does } = openCache()
    does(async () => answerOf({ contents: [], ttlMs: 1_000, cacheScope: 'public' }))
    const template = readTool({ kind: 'template', name: 'file:///{name}' })
    for (const uri of ['file:///a', 'file:///b', 'file:///a']) await handle(asking({ entry: template, uri }))
    expect(runs).toHaveLength(2)
  })
})

describe('F13: cached results are dropped', () => {
  test('after invalidate, for that server alone', async () => {
    const { handle, runs, invalidate } = openCache({ servers: { mail: { command: 'mail' } } })
    const mail = readTool({ server: 'mail' })
    const both = async () => {
      await handle(asking())
      await handle(asking({ entry: mail }))
    }
    await both()
    invalidate('files')
    await both()
    expect(runs.map(({ entry }) => entry.server)).toEqual(['files', 'mail', 'files'])
  })

  test('after a call that may have changed something, however it ended', async () => {
    const { handle, does, runs } = openCache()
    const write = entryOf({ name: 'write' })
    await handle(asking())
    await handle(asking({ entry: write }))
    await handle(asking())
    expect(runs).toHaveLength(3)
    does(async ({ entry }) => {
      if (entry === write) throw new ToolwayError('OUTCOME_UNKNOWN', 'Who knows.')
      return answerOf(text('new'))
    })
    await expect(handle(asking({ entry: write }))).rejects.toThrow()
    expect(textOf(await handle(asking()))).toBe('new')
  })

  test.each([
    new ToolwayError('SERVER_UNAVAILABLE', 'No.', { unsent: true }),
    new ToolwayError('CIRCUIT_OPEN', 'No.'),
    new ToolwayError('OVERLOADED', 'No.'),
  ])('but not after one that surely has not ($code)', async (error) => {
    const { handle, does } = openCache()
    const write = entryOf({ name: 'write' })
    await handle(asking())
    does(() => Promise.reject(error))
    await expect(handle(asking({ entry: write }))).rejects.toBe(error)
    expect(textOf(await handle(asking()))).toBe('answer 1')
  })

  test('if they were requested before the change and arrived after it', async () => {
    const { handle, does, invalidate, runs } = openCache()
    does(async () => {
      if (runs.length === 1) invalidate('files')
      return answerOf(text(`answer ${runs.length}`))
    })
    expect(textOf(await handle(asking()))).toBe('answer 1')
    expect(textOf(await handle(asking()))).toBe('answer 2')
    expect(textOf(await handle(asking()))).toBe('answer 2')
  })

  test('under a configuration that makes another server of it, or other names', async () => {
    const { handle, reloaded, runs } = openCache()
    await handle(asking())
    await reloaded({})(asking())
    expect(runs).toHaveLength(1)
    await reloaded({ servers: { files: { args: ['--other'] } } })(asking())
    await reloaded({ naming: { strategy: 'flat' } })(asking())
    expect(runs).toHaveLength(3)
  })

  test('under another definition', async () => {
    const { handle, runs } = openCache()
    for (const description of ['one', 'two', 'one']) {
      await handle(asking({ entry: readTool({ definition: { description } }) }))
    }
    expect(runs).toHaveLength(2)
  })

  test('after clear', async () => {
    const { handle, runs, clear, stats } = openCache()
    await handle(asking())
    clear()
    expect(stats()).toMatchObject({ entries: 0, bytes: 0 })
    await handle(asking())
    expect(runs).toHaveLength(2)
  })

  test('if callers changed, for callers that servers can ask', async () => {
    const { handle, runs, callersChanged } = openCache()
    const capable = { caller: { capabilities: { roots: {} } } }
    for (const call of [{}, capable]) await handle(asking(call))
    callersChanged()
    for (const call of [{}, capable]) await handle(asking(call))
    expect(runs).toHaveLength(3)
  })

  test('where callers have changed while a server worked', async () => {
    const { handle, runs, does, callersChanged } = openCache()
    does(async () => {
      if (runs.length === 1) callersChanged()
      return answerOf({ ...text(`answer ${runs.length}`), cacheScope: 'private' })
    })
    const capable = { caller: { capabilities: { roots: {} } } }
    const said: unknown[] = []
    for (const _ of [1, 2, 3]) said.push(textOf(await handle(asking(capable))))
    expect(said).toEqual(['answer 1', 'answer 2', 'answer 2'])
  })
})

import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../tests/fixtures/cpu-time.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { ToolwayError } from '../core/errors.ts'
import { listed, ownTools, setUp } from './catalog.fixture.ts'
import { decideBy, type FakeSource, fakeSource, namingOf } from './source.fixture.ts'

const own = ownTools()

/** Whether a promise has settled by now, without waiting for it. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const note = () => {
    settled = true
  }
  promise.then(note, note)
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

describe('waiting', () => {
  test('V2: a list waits for a server that is starting, up to the deadline, counted from the request', async () => {
    const slow = fakeSource('slow', { silent: true, health: 'starting' })
    const { view, clock } = setUp([fakeSource('quick', { tools: ['a'] }), slow])
    const first = view.ready()
    await clock.pass(1_500)
    const second = view.ready()
    expect(await isSettled(first)).toBe(false)
    await clock.pass(500)
    expect(await isSettled(first)).toBe(true)
    expect(await isSettled(second)).toBe(false)
    await clock.pass(1_500)
    expect(await isSettled(second)).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('V2: by default 8 s where nothing is known of the server, 2 s where something is or the caller is in a hurry', async () => {
    const [fresh, known] = [fakeSource('fresh', { silent: true }), fakeSource('known', { silent: true, tools: ['a'] })]
    const settledAfter = async (source: typeof fresh, brief?: 'brief') => {
      const { view, clock } = setUp([source], { listDeadlineMs: undefined })
      const ready = view.ready(brief)
      const start = clock.now()
      while (!(await isSettled(ready))) await clock.pass(500)
      return clock.now() - start
    }
    expect(await settledAfter(fresh)).toBe(8_000)
    expect(await settledAfter(fresh, 'brief')).toBe(2_000)
    expect(await settledAfter(known)).toBe(2_000)
  })

  test('V2: a server that a call waits for starts before others, and one that only a list waits for does not', async () => {
    const expedited: string[] = []
    const starting = (name: string) => ({
      ...fakeSource(name, { silent: true, health: 'starting' }),
      expedite: () => void expedited.push(name),
    })
    const { view, clock } = setUp([starting('listed'), starting('called')])
    const waiting = Promise.allSettled([view.ready(), view.resolve('tool', 'called.a')])
    await clock.pass(60_000)
    await waiting
    expect(expedited).toEqual(['called'])
  })

  test.each(['unhealthy', 'needs-auth', 'disabled'] as const)(
    'V2: no list waits for a server that is %s',
    async (health) => {
      const broken = fakeSource('broken', { silent: true, health })
      const { view } = setUp([broken])
      expect(await isSettled(view.ready())).toBe(true)
      expect(broken.asked).toBe(1)
    },
  )

  test('V2: a list names the servers that it lacks, but none that is closed to the caller', () => {
    const starting = fakeSource('slow', { health: 'starting' })
    const down = fakeSource('down')
    down.become('unhealthy', 'spawn ENOENT')
    const others = [
      fakeSource('empty'),
      fakeSource('off', { health: 'disabled' }),
      fakeSource('old', { tools: ['a'], health: 'stale' }),
      fakeSource('secret', { health: 'starting' }),
    ]
    const closed = (_: unknown, server: string) =>
      server === 'secret'
        ? ({ allowed: false, code: 'DENIED_BY_POLICY', rule: 'no', reason: 'No.' } as const)
        : undefined
    const { view } = setUp([starting, down, ...others], { closed })
    expect(view.missing()).toEqual([
      { server: 'slow', status: 'starting', reason: '' },
      { server: 'down', status: 'unhealthy', reason: 'spawn ENOENT' },
    ])
  })

  test('S1: half an emoji in the reason of a missing server does not make the list unreadable', () => {
    const down = fakeSource('down')
    down.become('unhealthy', 'it said \ud83c')
    expect(setUp([down]).view.missing()).toMatchObject([{ reason: 'it said \ufffd' }])
  })

  test('B2: a list may be cached as long as each of its servers allows, except those closed to the caller', () => {
    const lasting = (name: string, tool?: number): FakeSource => ({
      ...fakeSource(name, { tools: ['a'] }),
      listTtlMs: (kind) => (kind === 'tool' ? tool : undefined),
    })
    const closed = (_: unknown, server: string) =>
      server === 'secret'
        ? ({ allowed: false, code: 'DENIED_BY_POLICY', rule: 'no', reason: 'No.' } as const)
        : undefined
    const { view } = setUp([lasting('long', 90_000), lasting('short', 5_000), lasting('any'), lasting('secret', 0)], {
      closed,
    })
    expect(view.listTtlMs('tool')).toBe(5_000)
    expect(view.listTtlMs('prompt')).toBeUndefined()
  })

  test('G2: lists wait for a server only until it has been ready once; a call that names it waits', async () => {
    const files = fakeSource('files', { tools: ['a'] })
    const { view, clock } = setUp([files])
    await view.ready()
    files.fallSilent()
    expect(await isSettled(view.ready())).toBe(true)
    const found = view.find('tool', 'files', 'b')
    found.catch(() => {})
    await clock.pass(29_999)
    expect(await isSettled(found)).toBe(false)
    await clock.pass(1)
    await expect(found).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
  })

  test.each(['stale', 'healthy'] as const)(
    'S1, V2: a call of an unknown name lists a server that is %s again: the one that it names, even if that is idle',
    async (health) => {
      const lists: string[] = []
      const listedAgain = (name: string): FakeSource => {
        const source = fakeSource(name, { tools: ['a'], health })
        const relist = async (wake = 'not') => {
          lists.push(`${name} ${wake}`)
          source.offer({ tools: ['a', 'b'] })
        }
        return { ...source, relist }
      }
      const { view } = setUp([listedAgain('old'), listedAgain('other')])
      await view.ready()
      const found = await Promise.all([view.resolve('tool', 'old__b'), view.find('tool', 'old', 'b')])
      expect(found.map(({ name }) => name)).toEqual(['old__b', 'old__b'])
      expect(new Set(lists)).toEqual(new Set(['old wake']))
      await expect(view.resolve('tool', 'b')).resolves.toMatchObject({ name: 'old__b' })
      const flat = setUp([listedAgain('third'), listedAgain('fourth')], { naming: namingOf({ strategy: 'flat' }) })
      lists.length = 0
      await expect(flat.view.resolve('tool', 'c')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
      expect(lists).toEqual(['third not', 'fourth not'])
    },
  )

  test('S1: a list waits for servers that are listed for a new conversation, but not if it is to be brief', async () => {
    const renewal = Promise.withResolvers<void>()
    const files: FakeSource = { ...fakeSource('files', { tools: ['a'] }), renew: () => renewal.promise }
    const { view, clock } = setUp([files])
    await view.ready()
    view.conversationStarted?.()
    expect(await isSettled(view.ready('brief'))).toBe(true)
    const ready = view.ready()
    expect(await isSettled(ready)).toBe(false)
    await clock.pass(2_000)
    await ready
    const later = view.ready()
    expect(await isSettled(later)).toBe(false)
    renewal.resolve()
    await later
    expect(await isSettled(view.ready())).toBe(true)
  })

  test('S1, B5: a conversation of a caller to whom a server is closed does not list that server', async () => {
    let renewed = 0
    const files: FakeSource = {
      ...fakeSource('files', { tools: ['a'] }),
      renew: () => {
        renewed++
        return undefined
      },
    }
    const closed = () => ({ allowed: false, code: 'DENIED_BY_POLICY', rule: 'no', reason: 'No.' }) as const
    setUp([files], { closed }).view.conversationStarted?.()
    expect(renewed).toBe(0)
    setUp([files]).view.conversationStarted?.()
    expect(renewed).toBe(1)
  })

  test('G2: a list is available as soon as all servers are ready', async () => {
    const slow = fakeSource('slow', { silent: true })
    const { view } = setUp([slow])
    const ready = view.ready()
    expect(await isSettled(ready)).toBe(false)
    slow.offer({ tools: ['late'] })
    slow.speak()
    await ready
    expect(listed(view)).toEqual(['slow__late'])
  })

  test('F3: a call by a name that is not known yet waits for the server it names, and for no other', async () => {
    const [slow, hanging] = [fakeSource('slow', { silent: true }), fakeSource('hanging', { silent: true })]
    const { view } = setUp([slow, hanging])
    const found = view.resolve('tool', 'slow.late')
    expect(await isSettled(found)).toBe(false)
    expect(hanging.asked).toBe(0)
    slow.offer({ tools: ['late'] })
    slow.speak()
    expect((await found).name).toBe('slow__late')
  })

  test('F3: a call by a name that names no server waits for all', async () => {
    const slow = fakeSource('slow', { silent: true })
    const { view } = setUp([slow], { naming: namingOf({ strategy: 'flat' }) })
    const found = view.resolve('tool', 'late')
    slow.offer({ tools: ['late'] })
    slow.speak()
    expect((await found).entry.server).toBe('slow')
    await expect(view.resolve('tool', 'never')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
  })

  test('V2: of several servers that may have a name, the one that has it is enough', async () => {
    const [quick, hanging] = [fakeSource('quick', { silent: true }), fakeSource('hanging', { silent: true })]
    const { view, clock } = setUp([hanging, quick], { naming: namingOf({ strategy: 'flat' }) })
    const found = view.resolve('tool', 'early')
    quick.offer({ tools: ['early'] })
    quick.speak()
    expect((await found).entry.server).toBe('quick')
    expect(clock.pending).toBe(1)
  })

  test('V2: a custom name waits for the server that it is the name of, and for no other', async () => {
    const [slow, other] = [fakeSource('slow', { silent: true }), fakeSource('other', { silent: true })]
    const naming = namingOf({ strategy: 'custom', aliases: { 'slow.late': 'mine' } })
    const { view } = setUp([slow, other], { naming })
    const found = view.resolve('tool', 'mine')
    expect(await isSettled(found)).toBe(false)
    expect(other.asked).toBe(0)
    slow.offer({ tools: ['late'] })
    slow.speak()
    expect((await found).name).toBe('mine')
  })

  test('V2: a hashed name waits for the server that it may belong to', async () => {
    const slow = fakeSource('the slow one', { silent: true })
    const { view } = setUp([slow])
    const name = 'the_slow_one_late_2abcdefg'
    const found = view.resolve('tool', name)
    found.catch(() => {})
    expect(await isSettled(found)).toBe(false)
    slow.speak()
    await expect(found).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
  })

  test('V2: a name that no server can have fails at once, however many are starting', async () => {
    const slow = fakeSource('slow', { silent: true, health: 'starting' })
    const { view } = setUp([slow])
    await expect(view.resolve('tool', 'nobody.late')).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' })
    await expect(view.resolve('tool', 'late')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    await expect(view.find('tool', 'nobody', 'late')).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' })
    expect(slow.asked).toBe(0)
  })

  test.each([
    [{}, 'raise mcpServers.slow.timeout'],
    [{ timeoutMs: 1_000 }, 'a longer timeout_ms'],
    [{ timeoutMs: 1_000, timeoutKey: '--wait' }, 'a longer --wait'],
  ])('V4: the error of a call that waited with %j names what limited it', async (wait, remedy) => {
    const { view, clock } = setUp([fakeSource('slow', { silent: true, health: 'starting' })])
    const late = view.find('tool', 'slow', 'x', wait)
    late.catch(() => {})
    await clock.pass(60_000)
    await expect(late).rejects.toMatchObject({ message: expect.stringContaining(remedy) })
  })

  test('V2: a waiting call reports every second what it waits for, has its own timeout, and can be cancelled', async () => {
    const slow = fakeSource('slow', { silent: true, health: 'starting' })
    const { view, clock } = setUp([slow])
    const told: unknown[] = []
    const progress = (...heard: unknown[]) => told.push(heard)
    const late = view.find('tool', 'slow', 'x', { timeoutMs: 2_500, progress })
    late.catch(() => {})
    for (let second = 0; second < 3; second++) await clock.pass(1_000)
    await expect(late).rejects.toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/still starting after 2\.5 s.*a longer timeout_ms/),
    })
    expect(told).toEqual([
      [1_000, ['slow']],
      [2_000, ['slow']],
    ])
    const controller = new AbortController()
    const cancelled = view.resolve('tool', 'slow.x', { signal: controller.signal })
    controller.abort(new Error('no more'))
    await expect(cancelled).rejects.toThrow('no more')
    expect(clock.pending).toBe(0)
  })

  test('G2: disposal ends all waiting and leaves no timer', async () => {
    const { catalog, view, clock } = setUp([fakeSource('slow', { silent: true })])
    const ready = view.ready()
    catalog[Symbol.dispose]()
    await ready
    expect(clock.pending).toBe(0)
  })
})

describe('finding', () => {
  const sources = [
    ...own,
    fakeSource('files', { tools: ['read_file', 'write_file'] }),
    fakeSource('a', { tools: ['b.c'] }),
    fakeSource('a.b', { tools: ['c'] }),
  ]

  test('F3: an ambiguous spelling is refused and names the candidates', async () => {
    const { view } = setUp(sources)
    const names = listed(view).filter((name) => name.startsWith('a_'))
    const refusal = expect.objectContaining({
      code: 'TOOL_NOT_FOUND',
      message: expect.stringContaining(names.map((name) => `"${name}"`).join(', ')),
    })
    expect(names).toHaveLength(2)
    await expect(view.resolve('tool', 'a.b.c')).rejects.toEqual(refusal)
  })

  test('T1, V2: an entry of a list that the server failed to return is not reported as unknown', async () => {
    const partial = fakeSource('partial', { tools: ['a'], prompts: ['p'], health: 'degraded', incomplete: ['tool'] })
    const empty = fakeSource('empty', { health: 'degraded', incomplete: ['template'] })
    partial.become('degraded', 'Could not fetch these lists: tools/list.')
    const { view } = setUp([...sources, partial, empty])
    const unhealthy = { code: 'SERVER_UNHEALTHY', details: { server: 'partial', unsent: true } }
    await expect(view.resolve('tool', 'partial.b')).rejects.toMatchObject({
      ...unhealthy,
      message: expect.stringContaining('Could not fetch these lists: tools/list.'),
    })
    await expect(view.find('tool', 'partial', 'b')).rejects.toMatchObject(unhealthy)
    await expect(view.find('resource', 'empty', 'x:y')).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY' })
    await expect(view.find('prompt', 'partial', 'b')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    await expect(view.resolve('tool', 'partial.a')).resolves.toMatchObject({ name: 'partial__a' })
    expect(view.missing('tool').map(({ server }) => server)).toEqual(['partial', 'empty'])
    expect(view.missing('prompt').map(({ server }) => server)).toEqual(['empty'])
  })

  test('T1: unknown server, unknown tool and a server that is down are three errors', async () => {
    const down = fakeSource('down', { health: 'unhealthy' })
    const off = fakeSource('off', { health: 'disabled' })
    const { view } = setUp([...sources, down, off])
    await expect(view.resolve('tool', 'file.read_file')).rejects.toMatchObject({
      code: 'SERVER_NOT_FOUND',
      message: 'There is no server named "file". Did you mean "files"?',
    })
    await expect(view.resolve('tool', 'files.read_fil')).rejects.toMatchObject({
      code: 'TOOL_NOT_FOUND',
      message: 'There is no tool "files.read_fil" on the server "files". Did you mean "files__read_file"?',
      details: { server: 'files' },
    })
    await expect(view.resolve('tool', 'down.x')).rejects.toMatchObject({
      code: 'SERVER_UNHEALTHY',
      details: { server: 'down' },
    })
    await expect(view.find('tool', 'down', 'x')).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY' })
    await expect(view.find('tool', 'off', 'x')).rejects.toMatchObject({ code: 'SERVER_DISABLED' })
    await expect(view.find('tool', 'nobody', 'x')).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' })
    await expect(view.find('tool', 'files', 'reed_file')).rejects.toMatchObject({
      code: 'TOOL_NOT_FOUND',
      message: 'There is no tool "reed_file" on the server "files". Did you mean "read_file"?',
    })
    await expect(view.find('tool', 'files', 'files__read_file')).rejects.toMatchObject({
      message: expect.stringContaining('"read_file"'),
    })
    await expect(view.resolve('resource', 'x://y')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    await expect(view.resolve('prompt', 'nothing')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
  })

  test('T1: a server that hangs is not said to lack the tool', async () => {
    const { view, clock } = setUp([fakeSource('slow', { silent: true })])
    const found = view.find('tool', 'slow', 'x')
    found.catch(() => {})
    await clock.pass(30_000)
    await expect(found).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { server: 'slow' } })
  })

  test('T1: the error for a tool’s own name, misspelt, suggests the served one', async () => {
    const { view } = setUp(sources)
    await expect(view.resolve('tool', 'read_fil')).rejects.toThrow('Did you mean "files__read_file"?')
  })

  test('T1: so does a misspelling behind the name of its server, where it is served without that', async () => {
    const { view } = setUp([fakeSource('native', { tools: ['hash', 'time'] })])
    await expect(view.resolve('tool', 'native.hsh')).rejects.toThrow('Did you mean "hash"?')
  })

  test('G6: errors do not tell what the caller may not use, but finding it is left to policy to refuse', async () => {
    const { view } = setUp(sources, {
      decide: decideBy((_, entry) => entry.name !== 'read_file' && entry.server !== 'a'),
    })
    await expect(view.resolve('tool', 'read_file')).rejects.toThrow(/^((?!files__read_file).)*$/)
    await expect(view.resolve('tool', 'a.b.c')).rejects.toThrow(
      /^"a\.b\.c" is not the exact name of a tool\. Did you mean "a_b__c_[a-z2-7]{8}"\?$/,
    )
    expect((await view.resolve('tool', 'files.read_file')).name).toBe('files__read_file')
  })

  test('G6: the health of a denied server is not revealed by a spelling that could also mean another', async () => {
    const secret = fakeSource('a.down')
    secret.become('unhealthy', 'the vault at 10.0.0.7 is sealed')
    const closed = (_: unknown, server: string) =>
      server === 'a.down'
        ? ({ allowed: false, code: 'DENIED_BY_POLICY', rule: 'no', reason: 'No.' } as const)
        : undefined
    const { view } = setUp([...sources, secret], { closed })
    await expect(view.resolve('tool', 'a.down.x')).rejects.toMatchObject({
      code: 'TOOL_NOT_FOUND',
      details: { server: 'a' },
      message: expect.not.stringContaining('10.0.0.7'),
    })
    expect(secret.asked).toBe(0)
    await expect(view.resolve('resource', 'x://a.down/y')).rejects.toMatchObject({ code: 'DENIED_BY_POLICY' })
  })

  test('G6: a caller that may use nothing of a server gets an error with the rule and without names of its tools', () => {
    const { view } = setUp(sources, {
      decide: (_, { server, name }) =>
        server === 'files'
          ? { allowed: false, code: 'WRITE_NOT_ALLOWED', rule: 'the rule', reason: `Not ${name}.` }
          : { allowed: true, rule: 'yes' },
    })
    expect(view.refusal('a')).toBeUndefined()
    expect(view.refusal('a', 'tool')).toBeUndefined()
    const refusal = view.refusal('files')
    expect(refusal).toMatchObject({ code: 'WRITE_NOT_ALLOWED', details: { rule: 'the rule', server: 'files' } })
    expect(refusal?.message).toMatch(/^((?!read_file|write_file).)*$/)
    expect(refusal?.message).toMatch(/mcpServers\.files\.readTools.*mcpServers\.files\.trustAnnotations/)
  })

  test('T1: a wrong name among ten thousand is answered with near ones', async () => {
    const tools = Array.from({ length: 10_000 }, (_, index) => `tool_number_${index}_reads`)
    const { view } = setUp([fakeSource('many', { tools })])
    await expect(view.resolve('tool', 'many.tool_number_4711_read')).rejects.toThrow(
      'Did you mean "many__tool_number_4711_reads"',
    )
    await expect(view.resolve('tool', 'x'.repeat(1_000_000))).rejects.toThrow('There is no tool "xxx')
  })

  test('F1: an entry is found by its server and its own name', async () => {
    const { view } = setUp(sources)
    expect((await view.find('tool', 'a', 'b.c')).entry.server).toBe('a')
    expect((await view.find('tool', 'toolway', 'list_servers')).name).toBe('list_servers')
  })

  test('B4: a search finds tools, not meta-tools, of one server if asked', async () => {
    const { view } = setUp([
      fakeSource('one', { tools: ['send_mail'] }),
      fakeSource('two', { tools: ['send_letter', 'send_parcel'] }),
      fakeSource('toolway', { tools: ['send'] }),
    ])
    const names = async (query: string, options: { limit: number; server?: string }) =>
      (await view.search(query, options)).tools.map(({ name }) => name)
    expect(await names('send a letter', { limit: 2 })).toEqual(['two__send_letter', 'one__send_mail'])
    expect(await names('send', { limit: 5, server: 'two' })).toEqual(['two__send_letter', 'two__send_parcel'])
  })

  test('V13: the first search among thousands of tools lets other work run in between', async () => {
    const tools = Array.from({ length: 3_000 }, (_, at) => `read_record_${at}_of_the_archive_of_all_letters`)
    const { view } = setUp([fakeSource('files', { tools })])
    view.list('tool')
    let turns = 0
    const turn = () => {
      turns++
      if (turns > 0) setImmediate(turn)
    }
    setImmediate(turn)
    const { total } = await view.search('read a record', { limit: 5 })
    const between = turns
    turns = Number.NEGATIVE_INFINITY
    expect(total).toBe(3_000)
    expect(between).toBeGreaterThan(1)
  })

  test('B4: a search knows what has changed', async () => {
    const files = fakeSource('files', { tools: ['read'] })
    const { view } = setUp([files])
    expect(await view.search('delete', { limit: 5 })).toEqual({ tools: [], total: 0 })
    files.offer({ tools: ['delete'] })
    expect((await view.search('delete', { limit: 5 })).tools.map(({ name }) => name)).toEqual(['files__delete'])
  })

  test('B2: URIs in results are those under which we serve them', () => {
    const { catalog } = setUp([fakeSource('files', { resources: ['x://1'] })])
    const served = catalog.servedUris(callOf({ entry: entryOf({ server: 'files' }) }))
    expect(served('x://1')).toBe('x://files/1')
    expect(served('x://2')).toBe('x://files/2')
  })

  test('B2, G3: URIs of a server without resources stay, unless they would be read from another server', () => {
    const tools = fakeSource('tools', { tools: ['read'], mayHaveResources: false })
    const flat = { naming: namingOf({ strategy: 'flat' }) }
    const { catalog } = setUp([tools, fakeSource('files', { resources: ['x://1'] })], flat)
    const served = catalog.servedUris(callOf({ entry: entryOf({ server: 'tools' }) }))
    expect(served('file:///tmp/a.png')).toBe('file:///tmp/a.png')
    expect(served('x://1')).toBe('x://tools/1')
    expect(served('file:///files/etc')).toBe('file:///tools/files/etc')
    expect(served('toolway://files/x')).toBe('toolway://tools/toolway://files/x')
  })

  test('B2, G3: web addresses that a server with resources does not list stay, unless they would be read from another', () => {
    const docs = fakeSource('docs', { resources: ['https://docs.test/1'], templates: ['https://docs.test/page/{id}'] })
    const { catalog } = setUp([docs, fakeSource('wiki', { resources: ['https://wiki.test/1'] })])
    const served = catalog.servedUris(callOf({ entry: entryOf({ server: 'docs' }) }))
    expect(served('https://example.com/report')).toBe('https://example.com/report')
    expect(served('HTTP://example.com')).toBe('HTTP://example.com')
    for (const path of ['docs.test/1', 'docs.test/page/7', 'wiki.test/1', 'wiki/wiki.test/1']) {
      expect(served(`https://${path}`)).toBe(`https://docs/${path}`)
    }
    const call = callOf({ entry: entryOf({ server: 'docs' }) })
    const read = catalog.servedUris({ ...call, input: { ...call.input, uri: 'https://docs.test/2' } })
    expect(read('https://docs.test/2')).toBe('https://docs/docs.test/2')
  })

  test('B2, V6: thousands of URIs in a result are converted quickly, even long ones', async () => {
    const others = Array.from({ length: 100 }, (_, at) => fakeSource(`s${at}`, { resources: [`x://${at}`] }))
    const { catalog } = setUp([fakeSource('tools', { tools: ['read'], mayHaveResources: false }), ...others])
    const served = catalog.servedUris(callOf({ entry: entryOf({ server: 'tools' }) }))
    const uris = Array.from({ length: 2_000 }, (_, at) => `https://example.com/${at}`)
    const long = 'a'.repeat(8 * 1024 * 1024)
    await expectCpuBelow(5_000, () => {
      expect(uris.filter((uri) => served(uri) !== uri)).toEqual([])
      expect(served(long) === long).toBe(true)
    })
  })
})

test.each([
  ['tool', 'files__read', 'read'],
  ['tool', 'files.read', 'read'],
  ['tool', 'toolway__files__read', 'read'],
  ['tool', 'read', undefined],
  ['resource', 'x://files/1', 'x://1'],
  ['resource', 'x://1', undefined],
] as const)('F11: the own name of the %s %s on its server is %s', (kind, spelling, own) => {
  const { view } = setUp([fakeSource('files')])
  expect(view.ownName?.(kind, 'files', spelling)).toBe(own)
})

test.each([false, true])(
  'J2: a server of which only writes are known is shown with the reason, hideDenied: %s',
  (hideDenied) => {
    const files = fakeSource('files', { tools: ['write'] })
    const rule = 'agents.ci.readOnly'
    const denial = { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason: 'No.' } as const
    const sources = [...own, files, fakeSource('sink', { tools: ['a'] }), fakeSource('vault', { tools: ['open'] })]
    const { view } = setUp(sources, {
      hideDenied,
      decide: (_, { server }) => {
        if (server === 'vault') return { ...denial, code: 'DENIED_BY_POLICY' }
        return server === 'files' || server === 'sink' ? denial : { allowed: true, rule }
      },
    })
    const shown = view.servers().filter(({ name }) => name !== 'native')
    if (hideDenied) return expect(shown).toEqual([])
    const reason = expect.stringMatching(/agents\.ci\.readOnly .*mcpServers\.files\.readTools/)
    expect(shown).toMatchObject([{ name: 'files', tools: 0, status: { reason } }])
  },
)

describe('policy.hideDenied', () => {
  const sources = () => [
    ...own,
    fakeSource('files', { tools: ['read', 'write'], prompts: ['greet', 'secret'] }),
    fakeSource('vault', { tools: ['open'], prompts: ['ask'] }),
    fakeSource('mute', { tools: ['a'] }),
  ]
  const denied = ['files.write', 'files.secret', 'mute.a']
  const hidden = () =>
    setUp(sources(), {
      hideDenied: true,
      decide: decideBy((_, { server, name }) => server !== 'vault' && !denied.includes(`${server}.${name}`)),
      closed: (_, server) =>
        server === 'vault'
          ? { allowed: false, code: 'NAMESPACE_NOT_ALLOWED', rule: 'agents.a', reason: 'Not for you.' }
          : undefined,
    }).view
  const thrown = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => undefined,
      (one: unknown) => one,
    )
    return error as ToolwayError
  }
  /** What a caller sees of an error, without the name that it asked for. */
  const seen = ({ message, data }: ToolwayError, name: string) =>
    JSON.stringify([message.replaceAll(name, 'NAME'), data]).replaceAll(name, 'NAME')

  test.each([
    ['a tool', 'tool', 'files__write', 'files__wxyte'],
    ['a tool in another spelling', 'tool', 'files.write', 'files.wxyte'],
    ['a prompt', 'prompt', 'files__secret', 'files__sxyret'],
    ['a tool of a closed server', 'tool', 'vault__open', 'vxylt__open'],
    ['a prompt of a closed server', 'prompt', 'vault__ask', 'vxylt__ask'],
    ['a tool of a server of which everything is denied', 'tool', 'mute__a', 'mxye__a'],
  ] as const)('B6: %s that is denied gets the error of one that is missing', async (_, kind, denied, missing) => {
    const view = hidden()
    const [one, other] = [await thrown(view.resolve(kind, denied)), await thrown(view.resolve(kind, missing))]
    const [server, name] = [denied.split(/__|\./)[0] as string, missing.split(/__|\./)[0] as string]
    expect(seen(one, denied).replaceAll(server, name)).toBe(seen(other, missing))
    expect(one.truth.kind.denial).toBe(true)
    expect(other.truth).toBe(other)
  })

  test('B6: also by server and name, and what is allowed is found', async () => {
    const view = hidden()
    expect(seen(await thrown(view.find('tool', 'files', 'write')), 'write')).toBe(
      seen(await thrown(view.find('tool', 'files', 'wxyte')), 'wxyte'),
    )
    expect(seen(await thrown(view.find('tool', 'vault', 'open')), 'vault')).toBe(
      seen(await thrown(view.find('tool', 'vxylt', 'open')), 'vxylt'),
    )
    expect((await view.find('tool', 'files', 'read')).entry.name).toBe('read')
    expect((await view.resolve('tool', 'files.read')).entry.name).toBe('read')
    expect(view.refusal('vault')).toBeUndefined()
    expect(view.concealed?.('vault')).toMatchObject({ code: 'NAMESPACE_NOT_ALLOWED' })
  })
})

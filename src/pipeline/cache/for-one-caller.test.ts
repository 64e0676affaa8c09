import { describe, expect, test, vi } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { answerOf, asking, openCache, openHeldBack, readTool, settled, textOf } from './cache.fixture.ts'

const answer = answerOf({ content: [{ type: 'text', text: 'the answer' }] })
const cancelled = () => new ToolwayError('CANCELLED', 'The caller cancelled this call.')

describe('F13: answers that are for one caller', () => {
  test.each([{}, { shared: ['mail.read'] }])(
    'B6: with perPrincipal grants, no caller gets the result of another (cache: %j)',
    async (section) => {
      const mail = { url: 'https://mail.example.com/mcp', auth: { type: 'oauth', perPrincipal: true } }
      const { handle, runs } = openCache({ cache: section, servers: { mail } })
      const entry = readTool({ server: 'mail' })
      const askedBy = async (principal: string) => textOf(await handle(asking({ entry, caller: { principal } })))
      expect(await Promise.all(['ann', 'bob', 'ann'].map(askedBy))).toEqual(['answer 1', 'answer 2', 'answer 1'])
      expect(await askedBy('bob')).toBe('answer 2')
      expect(runs).toHaveLength(2)
    },
  )

  test('by default each principal has its own results and its own calls under way, though all act as one agent', async () => {
    const { handle, held } = openHeldBack()
    const principals = ['ann', 'bob', 'ann']
    const all = principals.map((principal) => handle(asking({ caller: { agent: 'team', principal } })))
    await settled()
    expect(held.map(({ call }) => call.caller.principal)).toEqual(['ann', 'bob'])
    for (const { call, answer: say } of held)
      say(answerOf({ content: [{ type: 'text', text: `for ${call.caller.principal}` }] }))
    expect((await Promise.all(all)).map(textOf)).toEqual(['for ann', 'for bob', 'for ann'])
    const again = principals.map((principal) => handle(asking({ caller: { agent: 'team', principal } })))
    expect((await Promise.all(again)).map(textOf)).toEqual(['for ann', 'for bob', 'for ann'])
    expect(held).toHaveLength(2)
  })

  test('with scope: agent the principals of one agent share, and one that cancels costs the others nothing', async () => {
    const { handle, held } = openHeldBack({ cache: { scope: 'agent' } })
    const controller = new AbortController()
    const gone = handle(asking({ caller: { principal: 'ann' }, signal: controller.signal }))
    const stays = handle(asking({ caller: { principal: 'bob' } }))
    const other = handle(asking({ caller: { principal: 'ann', agent: 'other' } }))
    await settled()
    expect(held).toHaveLength(2)
    controller.abort(cancelled())
    await expect(gone).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(held[0]?.call.signal.aborted).toBe(false)
    for (const { answer: say } of held) say(answer)
    expect([textOf(await stays), textOf(await other)]).toEqual(['the answer', 'the answer'])
  })

  test('cacheScope: public of a tool’s result does not widen what the operator has chosen', async () => {
    const { handle, does, runs } = openCache()
    does(async () => answerOf({ cacheScope: 'public', ttlMs: 1_000, content: [] }))
    for (const principal of ['ann', 'bob']) await handle(asking({ caller: { principal } }))
    expect(runs).toHaveLength(2)
  })

  test.each([
    ['principal', { scope: 'agent' }],
    ['agent', { shared: ['*.read'] }],
  ] as const)('W1: a private one does not reach another %s, though both waited for it', async (who, cache) => {
    const { handle, held } = openHeldBack({ cache })
    const by = (name: string) => handle(asking({ caller: { [who]: name } }))
    const ann = by('ann')
    const bob = by('bob')
    await settled()
    expect(held).toHaveLength(1)
    const own = (text: string) => answerOf({ cacheScope: 'private', ttlMs: 1_000, content: [{ type: 'text', text }] })
    held[0]?.answer(own('for ann'))
    await settled()
    held[1]?.answer(own('for bob'))
    expect([textOf(await ann), textOf(await bob)]).toEqual(['for ann', 'for bob'])
    expect(textOf(await by('bob'))).toBe('for bob')
    expect(textOf(await by('ann'))).toBe('for ann')
    void by('cid')
    await settled()
    expect(held).toHaveLength(3)
  })

  test.each([{ ttlMs: 0 }, { resultType: 'input_required' }, { resultType: 'task' }])(
    'one with %j is not shared, and the waiting calls then run separately',
    async (said) => {
      const { handle, held } = openHeldBack()
      const all = [1, 2, 3].map(() => handle(asking()))
      await settled()
      expect(held).toHaveLength(1)
      held[0]?.answer(answerOf({ ...said, content: [{ type: 'text', text: 'for the first' }] }))
      await settled()
      expect(held).toHaveLength(3)
      for (const { answer: say } of held) say(answerOf({ ...said, content: [{ type: 'text', text: 'own' }] }))
      expect((await Promise.all(all)).map(textOf)).toEqual(['for the first', 'own', 'own'])
    },
  )

  test('G3: a question goes to the first caller; the others run their own call, and nothing is cached', async () => {
    const { handle, held } = openHeldBack()
    const capable = { capabilities: { elicitation: {} } }
    const asked = [1, 2].map(() => vi.fn(async () => Json.of({ action: 'accept' })))
    const all = asked.map((ask) => handle(asking({ caller: capable, peer: { ask } })))
    await settled()
    expect(held).toHaveLength(1)
    await held[0]?.call.peer.ask('elicitation/create', Json.of({}), new AbortController().signal)
    await settled()
    expect(held).toHaveLength(2)
    for (const { answer: say } of held) say(answer)
    await Promise.all(all)
    expect(asked.map((ask) => ask.mock.calls.length)).toEqual([1, 0])
    // From now on each of its calls is its caller's own.
    for (const _ of [1, 2]) void handle(asking({ caller: capable }))
    await settled()
    expect(held).toHaveLength(4)
  })

  test('G3: a question for a caller that has left is sent to no other', async () => {
    const { handle, held } = openHeldBack()
    const capable = { capabilities: { elicitation: {} } }
    const [first, second] = [vi.fn(), vi.fn()]
    const controller = new AbortController()
    const gone = handle(asking({ caller: capable, peer: { ask: first }, signal: controller.signal }))
    const stays = handle(asking({ caller: capable, peer: { ask: second } }))
    await settled()
    controller.abort(cancelled())
    await expect(gone).rejects.toMatchObject({ code: 'CANCELLED' })
    const question = held[0]?.call.peer.ask('elicitation/create', Json.of({}), new AbortController().signal)
    await expect(question).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(held[0]?.call.signal).toMatchObject({ aborted: true, reason: { code: 'CANCELLED' } })
    await settled()
    held[1]?.answer(answer)
    expect(textOf(await stays)).toBe('the answer')
    expect(first).not.toHaveBeenCalled()
    expect(second).not.toHaveBeenCalled()
  })

  test('G3: a question at once, before anything has been waited for, finds its caller', async () => {
    const { handle, does, stats } = openCache()
    const ask = vi.fn(async () => Json.of({ action: 'accept' }))
    does(async ({ peer, signal }) => {
      await peer.ask('elicitation/create', Json.of({}), signal)
      return answer
    })
    await handle(asking({ caller: { capabilities: { elicitation: {} } }, peer: { ask } }))
    expect(ask).toHaveBeenCalledOnce()
    expect(stats().entries).toBe(0)
  })
})

import { describe, expect, test } from 'vitest'
import { ask, byStage, chatting } from './chat.fixture.ts'
import { calls, type Reply, says } from './models/server.fixture.ts'
import { wrongJson } from './wrong-json.fixture.ts'

const selection = { reasoning: 'Because.', selected_tools: ['weather__forecast'] }
const args = { city: 'Rome' }
const final = { content: 'Sunny all day.' }

const good = {
  select: says(JSON.stringify(selection)),
  call: calls({ name: 'weather__forecast', arguments: args }),
  interpret: says(JSON.stringify(final)),
  answer: says('Directly.'),
}

const raw =
  '(The model could not summarize the results. These are the raw results:)\n\nweather__forecast:\nRome: sunny, 21 degrees'

describe('S4, S5: a malformed answer is repaired, then requested again, then replaced by a fallback', () => {
  test.each(wrongJson)('$what', async ({ what, write, isMended }) => {
    let script: Readonly<Record<string, Reply>> = good
    const { chat, server } = await chatting([(asked, response) => byStage(script)(asked, response)])
    const heard = async (wrong: Readonly<Record<string, Reply>>, stream = false) => {
      script = { ...good, ...wrong }
      const before = server.asked.length
      const { text, end } = await ask(chat, 'How is Rome?', { stream })
      return { text, notes: end.notes, requests: server.asked.length - before }
    }
    const sunny = { text: final.content, notes: [], requests: 3 }
    const directly = (what: string, requests: number) => ({
      text: 'Directly.',
      notes: [expect.stringContaining(what)],
      requests,
    })

    const select = await heard({ select: says(write(selection)) })
    expect(select, 'as a selection').toEqual(isMended ? sunny : directly('did not select tools', 3))

    const call = await heard({ call: calls({ name: 'weather__forecast', arguments: write(args) }) })
    expect(call, 'as the arguments of a call').toEqual(isMended ? sunny : directly('calls', 4))

    const given = { text: raw, notes: [expect.stringContaining('results')], requests: 4 }
    // Words are an interpretation, whatever form was asked for.
    const spoken = { text: write(final), notes: [], requests: 3 }
    for (const stream of [false, true]) {
      const interpret = await heard({ interpret: says(write(final)) }, stream)
      expect(interpret, `as an interpretation, stream ${stream}`).toEqual(
        isMended ? sunny : what === 'as prose' ? spoken : given,
      )
    }
  })
})

test('S4: the second request quotes the problem, and its answer is used', async () => {
  const wrong = { ...selection, selected_tools: ['weather__forcast'] }
  const { chat, server } = await chatting([
    byStage({
      ...good,
      select: [says(JSON.stringify(wrong)), good.select],
      call: [calls({ name: 'weather__forecast', arguments: { town: 'Rome' }, id: 'x' }), good.call],
      interpret: [says('{"answer": "Sunny!", "more": 1}'), good.interpret],
    }),
  ])
  const { text, end } = await ask(chat, 'How is Rome?')
  expect([text, end.notes]).toEqual(['Sunny all day.', []])
  const [, select, , call, , interpret] = server.asked.map(({ body }) => body.messages.slice(-2))
  expect(select).toEqual([
    { role: 'assistant', content: JSON.stringify(wrong) },
    {
      role: 'user',
      content:
        'Your answer is invalid. There is no tool "weather__forcast"; did you mean "weather__forecast"? Answer again in the requested format.',
    },
  ])
  expect(call).toEqual([
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'x', type: 'function', function: { name: 'weather__forecast', arguments: '{"town":"Rome"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'x', content: expect.stringMatching(/^Error: .*weather__forecast: .*city/) },
  ])
  expect(interpret).toMatchObject([
    { content: '{"answer": "Sunny!", "more": 1}' },
    { content: expect.stringContaining('content is missing') },
  ])
})

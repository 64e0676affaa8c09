import { calls, type Reply, says } from '../../../src/chat/models/server.fixture.ts'

/** The question, and what is true about it. */
export const question = 'How warm is it in Rome, and what is that number times three?'
export const answer = 'It is 21 degrees in Rome; three times that is 63.'

/** What the model says if it may not multiply. */
export const halfAnswer = 'It is 21 degrees in Rome; I cannot multiply.'

/** A model that goes through the stages of the staged loop as a good one would. */
export const stagedModel: Reply = (asked, response) => {
  const { response_format: format, tools } = asked.body
  const name = format?.json_schema?.name
  if (name === 'tool_selection') {
    return says(
      JSON.stringify({
        reasoning: 'A temperature, and a product.',
        selected_tools: ['weather__temperature', 'arithmetic__multiply'],
      }),
    )(asked, response)
  }
  if (name === 'final_response') return says(JSON.stringify({ content: answer }))(asked, response)
  if (!tools) throw new Error('a request of no stage')
  return calls(
    { name: 'weather__temperature', arguments: { city: 'Rome' }, id: 'w' },
    { name: 'arithmetic__multiply', arguments: { a: 21, b: 3 }, id: 'm' },
  )(asked, response)
}

/** A model that takes one step after another: the second needs what the first has found. */
export const agentModel: Reply = (asked, response) => {
  const results = asked.body.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
  const degrees = /(\d+) degrees/.exec(results[0] ?? '')?.[1]
  if (degrees === undefined) {
    return calls({ name: 'weather__temperature', arguments: { city: 'Rome' }, id: 'w' })(asked, response)
  }
  if (results.length === 1) {
    return calls({ name: 'arithmetic__multiply', arguments: { a: Number(degrees), b: 3 }, id: 'm' })(asked, response)
  }
  if (results[1]?.startsWith('Error')) return says(halfAnswer)(asked, response)
  const { result } = JSON.parse(results[1] ?? '{}')
  return says(`It is ${degrees} degrees in Rome; three times that is ${result}.`)(asked, response)
}

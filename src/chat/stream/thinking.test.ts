import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { createThinkingSplitter, splitThinking } from './thinking.ts'

test.each([
  ['<think>Hm.</think>\n\nYes.', 'Hm.', 'Yes.'],
  ['  \n<think></think>Yes.', '', 'Yes.'],
  ['Yes. <think>is a tag.</think>', '', 'Yes. <think>is a tag.</think>'],
  ['<think>a < b and </thin</think>c', 'a < b and </thin', 'c'],
  ['<think>never ends', 'never ends', ''],
  ['<thin', '', '<thin'],
  ['<b>Yes</b>', '', '<b>Yes</b>'],
  ['', '', ''],
])('S6: thoughts in the text: %j', (whole, thinking, text) => {
  expect(splitThinking(whole)).toEqual({ thinking, text })
})

test('S6: the split does not depend on the pieces', () => {
  const parts = fc.constantFrom('<think>', '</think>', '<', 'think>', 'x', ' ', '\n', '</', 'a b')
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 10 }), (pieces) => {
      const splitter = createThinkingSplitter()
      const said = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()]
      const joined = (kind: string) => said.map((part) => (part.kind === kind ? part.text : '')).join('')
      const { thinking, text } = splitThinking(pieces.join(''))
      expect([joined('thinking'), joined('text')]).toEqual([thinking, text])
    }),
    runs(100, 5_000),
  )
})

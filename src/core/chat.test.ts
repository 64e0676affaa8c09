import { expect, test } from 'vitest'
import { correctionMessages } from './chat.ts'

test('S4: the request for a corrected answer does not cut an emoji in half', () => {
  const [quote] = correctionMessages(`${'x'.repeat(3_999)}\u{1F600}`, 'It is not JSON.')
  expect(String(quote?.content).isWellFormed()).toBe(true)
})

test('S4: the request for a corrected answer has no empty message', () => {
  const messages = correctionMessages(' \n', 'It is empty.')
  expect(messages.map(({ content }) => content)).toEqual(['(nothing)', expect.stringContaining('It is empty.')])
})

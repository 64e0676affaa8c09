import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readBounded } from './read-bounded.ts'

const chunks = ['abc', 'def'].map((text) => Buffer.from(text))
const tooLarge = () => new Error('more than allowed')

test('all bytes up to the bound are read', async () => {
  expect(String(await readBounded(Readable.from(chunks), 6, tooLarge))).toBe('abcdef')
})

test('one byte more is refused, and the stream is closed', async () => {
  const stream = Readable.from(chunks)
  await expect(readBounded(stream, 5, tooLarge)).rejects.toThrow('more than allowed')
  expect(stream.destroyed).toBe(true)
})

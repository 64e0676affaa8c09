import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createByteTail } from './stderr.ts'

test('security: a tail holds the last bytes, however they came', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme-ascii', maxLength: 20 })),
      fc.integer({ min: 1, max: 16 }),
      (chunks, size) => {
        const tail = createByteTail(size)
        for (const chunk of chunks) tail.push(Buffer.from(chunk))
        expect(tail.text()).toBe(chunks.join('').slice(-size))
      },
    ),
  )
})

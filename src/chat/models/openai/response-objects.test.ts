import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventTooLong } from './errors.ts'
import { createSseDecoder } from './http.ts'

const read = (chunks: readonly Uint8Array[]): string[] => {
  const stream = createSseDecoder(10_000)
  return [...chunks.flatMap((chunk) => stream.push(chunk)), ...stream.end()]
}

test('S6: events are decoded wherever the stream is split', () => {
  const events = fc.array(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !/[\r\n]/.test(text)),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(events, fc.array(fc.nat(), { maxLength: 20 }), fc.constantFrom('\n', '\r\n'), (all, cuts, end) => {
      const bytes = Buffer.from(all.map((data) => `event: x${end}data: ${data}${end}: note${end}${end}`).join(''))
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other)
      const chunks = places.slice(1).map((server, index) => bytes.subarray(places[index], server))
      expect(read(chunks)).toEqual(all)
    }),
  )
})

test('S6: several data lines are joined', () => {
  expect(read([Buffer.from('data: a\ndata:b\n\ndata\n\n\n\n')])).toEqual(['a\nb'])
})

test('security: an endless event is refused before it fills the memory', () => {
  const stream = createSseDecoder(1_000)
  const flood = () => {
    for (let count = 0; count < 1_000; count++) stream.push(Buffer.from('data: xxxxxxxxxxxxxxxxxxxx'))
  }
  expect(flood).toThrow(EventTooLong)
})

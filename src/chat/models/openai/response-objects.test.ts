import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventTooLong } from './errors.ts'
import { createEventStream } from './response-objects.ts'

const read = (chunks: readonly Uint8Array[]): string[] => {
  const stream = createEventStream(10_000)
  return [...chunks.flatMap((chunk) => stream.push(chunk)), ...stream.end()]
}

test('S6: events come out the same, wherever the stream is cut', () => {
  const events = fc.array(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !/[\r\n]/.test(text)),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(events, fc.array(fc.nat(), { maxLength: 20 }), fc.constantFrom('\n', '\r\n'), (all, cuts, end) => {
      const bytes = Buffer.from(all.map((data) => `event: x${end}data: ${data}${end}: note${end}${end}`).join(''))
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other)
      const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
      expect(read(chunks)).toEqual(all)
    }),
  )
})

test('S6: data of several lines is one', () => {
  expect(read([Buffer.from('data: a\ndata:b\n\ndata\n\n\n\n')])).toEqual(['a\nb'])
})

test('security: an event without end is given up before it fills the memory', () => {
  const stream = createEventStream(1_000)
  const flood = () => {
    for (let count = 0; count < 1_000; count++) stream.push(Buffer.from('data: xxxxxxxxxxxxxxxxxxxx'))
  }
  expect(flood).toThrow(EventTooLong)
})

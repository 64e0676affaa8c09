import fc from 'fast-check'
import { expect, test } from 'vitest'
import { settledBuffers } from '../../tests/fixtures/memory.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { createLineReader } from './bytes.ts'

const reading = (maxLength = 1_000, skipsEmpty = false) => {
  const told: string[] = []
  const reader = createLineReader({
    maxLength,
    skipsEmpty,
    line: (bytes) => told.push(bytes.toString('latin1')),
    tooLong: () => told.push('TOO LONG'),
  })
  return { told, ...reader }
}

/** Arbitrary bytes, cut into chunks at random places. */
const chunks = (unit: fc.Arbitrary<string>) =>
  fc.array(
    fc.array(unit, { maxLength: 12 }).map((parts) => Buffer.from(parts.join(''), 'latin1')),
    { maxLength: 12 },
  )

test('security: however the bytes are cut, the lines are the same', () => {
  fc.assert(
    fc.property(chunks(fc.constantFrom('a', 'bc', '\n', '\r\n', '\r', '\xff', '')), (pieces) => {
      const whole = Buffer.concat(pieces).toString('latin1')
      const expected = whole.split('\n').map((line) => line.replace(/\r$/, ''))
      if (whole === '' || whole.endsWith('\n')) expected.pop()
      const reader = reading()
      for (const piece of pieces) reader.push(piece)
      reader.end()
      expect(reader.told).toEqual(expected)
    }),
    runs(100, 5_000),
  )
})

test('security: empty lines can be skipped, and no other line is', () => {
  fc.assert(
    fc.property(chunks(fc.constantFrom('a', 'aaaa', '\n', '\n\n')), (pieces) => {
      const [every, some] = [reading(6), reading(6, true)]
      for (const reader of [every, some]) {
        for (const piece of pieces) reader.push(piece)
        reader.end()
      }
      expect(some.told).toEqual(every.told.filter((line) => line !== ''))
    }),
    runs(60, 3_000),
  )
})

test('security: a line that is too long is dropped to its end and reported once, wherever it is cut', () => {
  fc.assert(
    fc.property(chunks(fc.constantFrom('a', 'aaaa', '\n')), (pieces) => {
      const whole = Buffer.concat(pieces).toString()
      const expected = whole.split('\n').map((line) => (line.length > 6 ? 'TOO LONG' : line))
      if (whole === '' || whole.endsWith('\n')) expected.pop()
      const reader = reading(6)
      for (const piece of pieces) reader.push(piece)
      reader.end()
      expect(reader.told).toEqual(expected)
    }),
    runs(100, 5_000),
  )
})

test('F14: a line that came in one chunk is a slice of it', () => {
  const chunk = Buffer.from('one\ntwo\n')
  const lines: Buffer[] = []
  createLineReader({ maxLength: 10, line: (bytes) => lines.push(bytes), tooLong: () => {} }).push(chunk)
  expect(lines.map((line) => line.buffer === chunk.buffer)).toEqual([true, true])
})

test('security: a line of 100 MB costs no more memory than the cap, and the next line is read', () => {
  const reader = reading(1024 * 1024)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (let sent = 0; sent < 100 * 1024 * 1024; sent += chunk.length) {
    reader.push(chunk)
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  reader.push(Buffer.from('\nnext\n'))
  expect(reader.told).toEqual(['TOO LONG', 'next'])
  // The buffer grows by doubling, so its smaller predecessors may still await garbage collection.
  expect(most).toBeLessThan(8 * 1024 * 1024)
})

test('security: a million one-byte chunks cost linear time and bounded memory', () => {
  const lengths: number[] = []
  const { push } = createLineReader({
    maxLength: 2_000_000,
    line: (bytes) => lengths.push(bytes.length),
    tooLong: () => {},
  })
  const byte = Buffer.from('x')
  for (let index = 0; index < 1_000_000; index++) push(byte)
  push(Buffer.from('\n'))
  expect(lengths).toEqual([1_000_000])
})

test('V6: the chunks of a long line are freed once the line is complete', () => {
  const lines: Buffer[] = []
  const { push } = createLineReader({ maxLength: 1e6, line: (bytes) => lines.push(bytes), tooLong: () => {} })
  const chunk = (text: string, length: number) => Buffer.alloc(length, text)
  const first = Buffer.concat([Buffer.from('earlier\n'), chunk('a', 20_000)])
  const middle = chunk('b', 20_000)
  const last = Buffer.concat([chunk('c', 20_000), Buffer.from('\nlater\n')])
  for (const one of [first, middle, last]) push(one)
  expect(lines.map(String)).toEqual([
    'earlier',
    `${'a'.repeat(20_000)}${'b'.repeat(20_000)}${'c'.repeat(20_000)}`,
    'later',
  ])
  // Other lines are slices of the first and last chunk.
  expect([first, middle, last].map(({ length }) => length)).toEqual([20_008, 0, 20_007])
})

test('security: of a dropped line, its first and last bytes are reported at its end, wherever it is cut', () => {
  const text = Array.from({ length: 3_000 }, (_, number) => number).join()
  for (const size of [1, 100, 4_095, 4_096, 4_097, 20_000]) {
    const told: string[] = []
    const reader = createLineReader({
      maxLength: 5_000,
      line: (bytes) => told.push(bytes.toString()),
      dropped: (head, tail) => told.push(head.toString(), tail.toString()),
    })
    const bytes = Buffer.from(`before\n${text}\nafter\n`)
    for (let from = 0; from < bytes.length; from += size) reader.push(bytes.subarray(from, from + size))
    expect(told).toEqual(['before', text.slice(0, 4_096), text.slice(-4_096), 'after'])
  }
})

test('security: a line that is dropped costs no more memory than its first and last bytes', async () => {
  const { push } = createLineReader({ maxLength: 1_000, line() {}, dropped() {} })
  const mebibyte = 1024 * 1024
  const before = await settledBuffers()
  for (let count = 0; count < 64; count++) push(Buffer.alloc(mebibyte, 'x'))
  expect((await settledBuffers(before + mebibyte)) - before).toBeLessThan(2 * mebibyte)
})

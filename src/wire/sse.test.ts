import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { EventReader, eventBytes, keepAlive } from './sse.ts'

const reading = (maxLength = 1_000) => {
  const told: object[] = []
  const reader = new EventReader({
    maxLength,
    event: ({ data, ...event }) => told.push({ ...event, data: data.toString() }),
    retry: (ms) => told.push({ retry: ms }),
    tooLong: () => told.push({ tooLong: true }),
  })
  return { told, push: (chunk: Buffer) => reader.push(chunk) }
}

const readAll = (text: string | Buffer, maxLength?: number) => {
  const reader = reading(maxLength)
  reader.push(Buffer.from(text))

  return reader.told
}

describe('EventReader', () => {
  test('reads data, type, id and retry', () => {
    expect(readAll('data: {"a":1}\n\n')).toEqual([{ event: 'message', data: '{"a":1}' }])
    expect(readAll('event: endpoint\ndata:/x\n\n')).toEqual([{ event: 'endpoint', data: '/x' }])
    expect(readAll('id: 7\ndata: a\ndata: b\n\ndata: c\n\n')).toEqual([
      { id: '7', event: 'message', data: 'a\nb' },
      { id: '7', event: 'message', data: 'c' },
    ])
    expect(readAll('retry: 1500\nretry: soon\n: comment\ndata\n\n')).toEqual([
      { retry: 1500 },
      { event: 'message', data: '' },
    ])
    expect(readAll('\ufeffdata:  two spaces\n\n')).toEqual([{ event: 'message', data: ' two spaces' }])
  })

  test('reports an id without data, but not comments, empty blocks or an incomplete event at the end', () => {
    expect(readAll('id: 1\n\n')).toEqual([{ id: '1', event: 'message', data: '' }])
    expect(readAll(': hello\n\n\n\nevent: x\n\ndata: cut off\n')).toEqual([])
    expect(readAll('id: a\0b\ndata: x\n\n')).toEqual([{ event: 'message', data: 'x' }])
  })

  test('security: however the bytes are cut and whichever line ends are used, the events are the same', () => {
    const lines = fc.array(
      fc.constantFrom('data: a', 'data: {"x": "y"}', 'id: 1', 'event: e', ': c', 'retry: 5', '', ''),
    )
    fc.assert(
      fc.property(
        lines,
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.integer({ min: 1, max: 9 })),
        (all, end, cuts) => {
          const text = Buffer.from(all.map((line) => line + end).join(''))
          const reader = reading()
          let from = 0
          for (const cut of cuts) {
            reader.push(text.subarray(from, from + cut))
            from += cut
          }
          reader.push(text.subarray(from))
          expect(reader.told).toEqual(readAll(all.map((line) => `${line}\n`).join('')))
        },
      ),
      runs(100, 5_000),
    )
  })

  test('security: an event that is too long is dropped whole and reported once, and the next one is read', () => {
    const next = 'data: ok\n\n'
    expect(readAll(`data: ${'x'.repeat(50)}\ndata: y\n\n${next}`, 20)).toEqual([
      { tooLong: true },
      { event: 'message', data: 'ok' },
    ])
    expect(readAll(`${'data: xxxxx\n'.repeat(50)}\n${next}`, 20)).toEqual([
      { tooLong: true },
      { event: 'message', data: 'ok' },
    ])
    expect(readAll(`data: ${'x'.repeat(20)}\n\n`, 20)).toEqual([{ event: 'message', data: 'x'.repeat(20) }])
  })

  test('security: data of endless small lines costs bounded memory', () => {
    const reader = reading(64 * 1024)
    const chunk = Buffer.from('data:\n'.repeat(2_000))
    const before = process.memoryUsage().arrayBuffers
    for (let index = 0; index < 100; index++) reader.push(chunk)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 * 1024)
    expect(reader.told).toEqual([{ tooLong: true }])
  })

  test('F14: data that came in one chunk is a slice of it', () => {
    const chunk = Buffer.from('data: {"a":1}\n\n')
    const parts: Buffer[] = []
    new EventReader({ maxLength: 100, event: ({ data }) => parts.push(data), tooLong: () => {} }).push(chunk)
    expect(parts[0]?.buffer).toBe(chunk.buffer)
  })
})

describe('eventBytes', () => {
  test('a written event is read back', () => {
    const json = fc.jsonValue().map((value) => JSON.stringify(value))
    fc.assert(
      fc.property(json, fc.option(fc.stringMatching(/^[a-z0-9-]+$/), { nil: undefined }), (data, id) => {
        const event = { data: Buffer.from(data), ...(id !== undefined && { id }) }
        expect(readAll(Buffer.concat([keepAlive, eventBytes(event)]))).toEqual([{ ...event, event: 'message', data }])
      }),
    )
  })

  test('security: line breaks in the data cannot forge a field', () => {
    const bytes = eventBytes({ data: Buffer.from('{\n"a":1\r\n}\n\ndata: forged'), event: 'message' })
    expect(bytes.toString().trimEnd().split('\n')).toHaveLength(2)
  })
})

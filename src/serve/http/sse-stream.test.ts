import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createBudgets } from '../../core/limits/budget.ts'
import { createUnreadResponses, SseStream } from './sse-stream.ts'

test('V6: a response that is read late again and again gets no further listeners, and counts only while unread', () => {
  const { response_bytes: budget } = createBudgets()
  const unread = createUnreadResponses(budget)
  const response = Object.assign(new EventEmitter(), { writableLength: 1_000_000 })
  const listeners = () => ['drain', 'finish', 'close'].map((event) => response.listenerCount(event))
  for (let round = 0; round < 20; round++) {
    unread.note(response as unknown as ServerResponse, 'slow')
    unread.note(response as unknown as ServerResponse, 'slow')
    expect(budget.usedBy('slow')).toBe(1_000_000)
    expect(listeners()).toEqual([1, 1, 1])
    response.emit('drain')
    expect(budget.usedBy('slow')).toBe(0)
  }
  expect(listeners()).toEqual([0, 0, 0])
})

test('F1: every MCP message names its event type, because some clients ignore messages without one', () => {
  const written: string[] = []
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    writeHead: () => {},
    flushHeaders: () => {},
    setTimeout: () => {},
    write: (bytes: Buffer | string) => written.push(bytes.toString()),
  })
  const unread = createUnreadResponses(createBudgets().response_bytes)
  const reader = { unread, caller: 'anyone' }
  const stream = new SseStream(response as unknown as ServerResponse, createManualClock(), reader)
  stream.send(Buffer.from('{"a":1}'))
  stream.send(Buffer.from('{"a":2}'), 'x-1')
  expect(written).toEqual(['event: message\ndata: {"a":1}\n\n', 'id: x-1\nevent: message\ndata: {"a":2}\n\n'])
})

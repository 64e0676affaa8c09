import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createBudgets } from '../../core/budgets.ts'
import { createUnreadResponses } from './sse-stream.ts'

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

import { describe, expect, test } from 'vitest'
import type { ChatStreamEvent } from '../../../../src/admin/contract.ts'
import { createEventParser } from '../../api/event-stream.ts'
import { applyEvent, failedTurn, historyOf, newTurn, stoppedTurn, type Turn } from './turn.ts'

const turnAfter = (events: readonly ChatStreamEvent[], turn: Turn = newTurn('Hi')): Turn =>
  events.reduce(applyEvent, turn)

const call = (id: string): ChatStreamEvent => ({
  kind: 'call',
  call: id,
  name: 'files__read',
  server: 'files',
  arguments: {},
})
const result = (id: string, isError = false): ChatStreamEvent => ({
  ...{ kind: 'result', call: id, isError, durationMs: 7, text: 'ok' },
})
const end: ChatStreamEvent = {
  ...{ kind: 'end', reason: 'stop', model: 'local', notes: ['A note.'] },
  usage: { promptTokens: 3, completionTokens: 4 },
}

describe('G10: a turn of a chat', () => {
  test('is built from the events of the response', () => {
    const turn = turnAfter([
      { kind: 'start', id: 'chat-1', model: 'local' },
      { kind: 'stage', stage: 'execute', round: 1 },
      ...[call('a'), call('b'), result('b', true), result('a')],
      { kind: 'thinking', text: 'Hm.' },
      ...[{ kind: 'text', text: 'Hel' } as const, { kind: 'text', text: 'lo' } as const],
      end,
    ])
    expect(turn).toMatchObject({
      ...{ question: 'Hi', id: 'chat-1', thinking: 'Hm.', text: 'Hello' },
      ...{
        state: 'answered',
        notes: ['A note.'],
        steps: [{ stage: 'execute', round: 1 }],
        tokens: 7,
        error: undefined,
      },
    })
    expect(turn.calls.map(({ call, state, ms }) => [call, state, ms])).toEqual([
      ['a', 'answered', 7],
      ['b', 'tool_error', 7],
    ])
  })

  test('keeps its text after a failure and cannot be stopped after its end', () => {
    const turn = turnAfter([
      { kind: 'text', text: 'Hel' },
      { kind: 'error', code: 'TIMEOUT', message: 'Late.' },
    ])
    expect(turn).toMatchObject({ text: 'Hel', state: 'failed', error: { code: 'TIMEOUT', message: 'Late.' } })
    expect(stoppedTurn(turn)).toBe(turn)
    expect(stoppedTurn(newTurn('Hi')).state).toBe('stopped')
  })

  test('the history contains answered questions only', () => {
    const answered = turnAfter([{ kind: 'text', text: 'Hello' }, end])
    const half = stoppedTurn(turnAfter([{ kind: 'text', text: 'Hel' }], newTurn('Again')))
    const silent = stoppedTurn(newTurn('Nothing'))
    const broken = failedTurn(turnAfter([{ kind: 'text', text: 'x' }]), { code: 'C', message: 'M' })
    expect(historyOf([answered, half, silent, broken]).map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'user: Hi',
      'assistant: Hello',
      'user: Again',
      'assistant: Hel',
    ])
  })
})

test('events are parsed from chunks of any size', () => {
  const stream = 'data: {"a":1}\n\n: keep-alive\n\nid: 1\ndata: {"b":\ndata: 2}\n\ndata: half'
  for (const size of [1, 3, 1000]) {
    const told: string[] = []
    const read = createEventParser((data) => told.push(data))
    for (let at = 0; at < stream.length; at += size) read(stream.slice(at, at + size))
    expect(told).toEqual(['{"a":1}', '{"b":\n2}'])
  }
})

import type { FunctionCall } from '../../core/chat.ts'
import type { Delta, End } from './model.ts'

/** An answer, whole. */
export interface ModelAnswer extends Omit<End, 'kind'> {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly FunctionCall[]
}

/** Waits for a whole answer. */
export async function gather(deltas: AsyncIterable<Delta>): Promise<ModelAnswer> {
  const all: Delta[] = []
  for await (const delta of deltas) all.push(delta)
  return gathered(all)
}

/** An answer of which all has been told. */
export function gathered(deltas: readonly Delta[]): ModelAnswer {
  const end = deltas.find((delta) => delta.kind === 'end') ?? { reason: 'unknown', restore: (value) => value }
  const joined = (kind: 'text' | 'thinking') =>
    deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('')
  return {
    reason: end.reason,
    restore: (value) => end.restore(value),
    ...('usage' in end && { usage: end.usage }),
    ...('form' in end && { form: end.form }),
    text: joined('text'),
    thinking: joined('thinking'),
    calls: deltas.flatMap((delta) => (delta.kind === 'call' ? [delta.call] : [])),
  }
}

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
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: FunctionCall[] = []
  let end: Omit<End, 'kind'> = { reason: 'unknown', restore: (value) => value }
  for await (const delta of deltas) {
    if (delta.kind === 'text') texts.push(delta.text)
    else if (delta.kind === 'thinking') thoughts.push(delta.text)
    else if (delta.kind === 'call') calls.push(delta.call)
    else {
      const { kind: _, ...rest } = delta
      end = rest
    }
  }
  return { ...end, text: texts.join(''), thinking: thoughts.join(''), calls }
}

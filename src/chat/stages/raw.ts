import type { ChatEvent, ChatMessage } from '../../core/chat.ts'
import { resultsIn } from '../conversation.ts'
import { cut } from '../cut.ts'

/** Somebody has to read it. */
const maxOfEach = 8 * 1024

/** What the tools have said, as they said it, for where the model cannot put it into words (S5). */
export function rawAnswer(messages: readonly ChatMessage[], hasBegun: boolean): ChatEvent {
  const results = resultsIn(messages).map(({ name, text }) => `${name}:\n${cut(text, maxOfEach)}`)
  const note = hasBegun
    ? '\n\n(The model broke off here. These are the results that it was about to tell of:)'
    : '(The model could not put the results into words. Here they are as the tools gave them:)'
  return { kind: 'text', text: [note, ...results].join('\n\n') }
}

import type { ChatMessage } from '../../../core/chat.ts'
import { withoutToolMessages } from '../instructions.ts'
import { textOnly } from './failures.ts'
import type { HistoryItem } from './library.ts'

/** A conversation as the library takes it, with the answer still to come. Calls and their results become text. */
export function historyOf(name: string, messages: readonly ChatMessage[]): readonly HistoryItem[] {
  const told = withoutToolMessages(messages).map((message): HistoryItem => {
    const text = textOf(name, message.content ?? '')
    if (message.role === 'assistant') return { type: 'model', response: [text] }
    return { type: message.role === 'system' ? 'system' : 'user', text }
  })
  return [...told, { type: 'model', response: [] }]
}

function textOf(name: string, content: Exclude<ChatMessage['content'], null>): string {
  if (typeof content === 'string') return content
  return content
    .map((part) => {
      if (part.type !== 'text') throw textOnly(name)
      return part.text
    })
    .join('\n')
}

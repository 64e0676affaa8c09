import { randomUUID } from 'node:crypto'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest } from '../../core/chat.ts'
import type { Person } from './person.ts'

/** How answers are wanted, for a whole conversation. */
export type Wish = Pick<ChatRequest, 'model' | 'mode' | 'toolChoice' | 'only'>

/** One answer, and all that led to it. */
export interface Answer {
  /** Joins its calls in audit and traces. */
  readonly id: string
  readonly content: string
  readonly end: ChatEnd | undefined
  readonly calls: readonly object[]
}

export interface Asking {
  readonly chat: Chat
  readonly person: Person
  readonly wish: Wish
}

/** Asks, and tells each event as it comes. */
export async function answerTo(
  { chat, person, wish }: Asking,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
  tell: (event: ChatEvent, id: string) => void,
): Promise<Answer> {
  const id = `chat-${randomUUID().slice(19)}`
  let content = ''
  let end: ChatEnd | undefined
  const calls = new Map<string, object>()
  for await (const event of chat.answer({ ...wish, ...person, id, messages, signal, stream: true })) {
    if (event.kind === 'text') content += event.text
    else if (event.kind === 'end') end = event
    else if (event.kind === 'call' || event.kind === 'result') {
      const { kind, ...told } = event
      calls.set(event.call, { ...calls.get(event.call), ...told })
    }
    tell(event, id)
  }
  signal.throwIfAborted()
  return { id, content, end, calls: [...calls.values()] }
}

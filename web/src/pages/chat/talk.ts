import { signal } from '@preact/signals'
import { type ChatRequest, streamChat } from '../../api/chat.ts'
import { ApiError } from '../../api/request.ts'
import { begun, failed, messagesOf, stopped, type Turn, withTold } from './turn.ts'

/** The conversation. It is kept while the user visits other pages. */
export const turns = signal<readonly Turn[]>([])

let answering: AbortController | undefined

const change = (next: (turn: Turn) => Turn): void => {
  const last = turns.peek().at(-1)
  if (last) turns.value = [...turns.peek().slice(0, -1), next(last)]
}

/** Resolves when the answer is complete, has failed or was stopped. */
export async function ask(text: string, whom: Omit<ChatRequest, 'messages'>): Promise<void> {
  const messages = [...messagesOf(turns.peek()), { role: 'user' as const, content: text }]
  const mine = new AbortController()
  answering = mine
  turns.value = [...turns.peek(), begun(text)]
  try {
    await streamChat({ ...whom, messages }, mine.signal, (event) => change((turn) => withTold(turn, event)))
  } catch (thrown) {
    if (mine.signal.aborted) return
    change((turn) => failed(turn, thrown instanceof ApiError ? thrown : { code: 'FAILED', message: String(thrown) }))
  }
}

/** Stops the current answer: the model and all tools that run for it. */
export function stop(): void {
  answering?.abort()
  change(stopped)
}

export function startAnew(): void {
  stop()
  turns.value = []
}

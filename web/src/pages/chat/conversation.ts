import { signal } from '@preact/signals'
import { type ChatRequest, streamChat } from '../../api/chat.ts'
import { ApiError } from '../../api/request.ts'
import { applyEvent, failedTurn, historyOf, newTurn, stoppedTurn, type Turn } from './turn.ts'

/** The conversation. It is kept while the user visits other pages. */
export const turns = signal<readonly Turn[]>([])

let current: AbortController | undefined

const updateLastTurn = (next: (turn: Turn) => Turn): void => {
  const last = turns.peek().at(-1)
  if (last) turns.value = [...turns.peek().slice(0, -1), next(last)]
}

/** Sends a message. Resolves when the answer is complete, has failed or has been stopped. */
export async function sendMessage(text: string, options: Omit<ChatRequest, 'messages'>): Promise<void> {
  const messages = [...historyOf(turns.peek()), { role: 'user' as const, content: text }]
  const controller = new AbortController()
  current = controller
  turns.value = [...turns.peek(), newTurn(text)]
  try {
    await streamChat({ ...options, messages }, controller.signal, (event) =>
      updateLastTurn((turn) => applyEvent(turn, event)),
    )
  } catch (thrown) {
    if (controller.signal.aborted) return
    updateLastTurn((turn) =>
      failedTurn(turn, thrown instanceof ApiError ? thrown : { code: 'FAILED', message: String(thrown) }),
    )
  }
}

/** Stops the current answer, including the model and all tools that are running for it. */
export function stop(): void {
  current?.abort()
  updateLastTurn(stoppedTurn)
}

export function startNewChat(): void {
  stop()
  turns.value = []
}

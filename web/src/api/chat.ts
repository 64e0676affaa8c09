import type { ChatStreamEvent } from '../../../src/serve/admin/contract.ts'
import { ApiError, respond } from './request.ts'

export interface ChatAsked {
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[]
  readonly model: string
  /** The configured mode if undefined. */
  readonly mode: string | undefined
  readonly agent: string
}

/**
 * Sends a chat request and streams the events of the response. Rejects with an ApiError, or with the signal's reason.
 */
export async function askChat(
  asked: ChatAsked,
  signal: AbortSignal,
  told: (event: ChatStreamEvent) => void,
): Promise<void> {
  const { body } = await respond('chat', { method: 'POST', body: asked, signal })
  let over = false
  const read = createEventData((data) => {
    const event = JSON.parse(data) as ChatStreamEvent
    over ||= event.kind === 'end' || event.kind === 'error'
    told(event)
  })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) read(piece.value)
  } catch (thrown) {
    if (signal.aborted) throw thrown
  }
  if (!over) throw new ApiError(0, 'NO_ANSWER', 'The connection was lost before the answer was complete.')
}

/** Incremental parser of server-sent events: passes on their data and skips comments and other fields. */
export function createEventData(told: (data: string) => void): (piece: string) => void {
  let rest = ''
  return (piece) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'))
      if (lines.length > 0) told(lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n'))
    }
  }
}

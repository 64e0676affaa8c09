import type { ChatStreamEvent } from '../../../src/serve/admin/contract.ts'
import { ApiError, fetchResponse } from './request.ts'

export type RequestMessage =
  | { readonly role: 'user'; readonly content: string | readonly RequestPart[] }
  | { readonly role: 'assistant'; readonly content: string }

type RequestPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

export interface ChatRequest {
  readonly messages: readonly RequestMessage[]
  readonly model: string
  /** The chat mode. If undefined, the configured mode applies. */
  readonly mode: string | undefined
  readonly agent: string
  /** Patterns such as `server.*` or `server.tool`. If undefined, all of the agent's tools are offered. */
  readonly only: readonly string[] | undefined
}

/**
 * Sends a chat request and streams the events of the response. Rejects with an ApiError if the request fails, or with
 * the signal's reason if it is aborted.
 */
export async function streamChat(
  request: ChatRequest,
  signal: AbortSignal,
  onEvent: (event: ChatStreamEvent) => void,
): Promise<void> {
  const { body } = await fetchResponse('chat', { method: 'POST', body: request, signal })
  let ended = false
  const parse = createEventParser((data) => {
    const event = JSON.parse(data) as ChatStreamEvent
    ended ||= event.kind === 'end' || event.kind === 'error'
    onEvent(event)
  })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) parse(chunk.value)
  } catch (thrown) {
    if (signal.aborted) throw thrown
  }
  if (!ended) throw new ApiError(0, 'NO_ANSWER', 'The connection was lost before the answer was complete.')
}

/**
 * An incremental parser for server-sent events. Passes the data of each event to `onData`; skips comments and other
 * fields.
 */
export function createEventParser(onData: (data: string) => void): (chunk: string) => void {
  let rest = ''
  return (chunk) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'))
      if (lines.length > 0) onData(lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n'))
    }
  }
}

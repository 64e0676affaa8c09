import type { ChatStreamEvent } from '../../../src/admin/contract.ts'
import { streamEvents } from './event-stream.ts'

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
  const lostMessage = 'The connection was lost before the answer was complete.'
  await streamEvents('chat', { body: request, signal, onEvent, lostMessage })
}

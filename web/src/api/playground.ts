import type { CompletionView, PlaygroundEvent } from '../../../src/admin/contract.ts'
import { parseExactly } from '../format/exact-json.ts'
import { streamEvents } from './event-stream.ts'
import { request } from './request.ts'

export interface PlaygroundRequest {
  readonly operation: 'call_tool' | 'read_resource' | 'get_prompt'
  /** The tool or prompt, or the URI of the resource. */
  readonly name: string
  /** The arguments as JSON text, because parsing would round large numbers. */
  readonly arguments: string
  /** The agent to act as; undefined for the credential's own. */
  readonly agent: string | undefined
}

/** Runs an operation and passes on its events. Aborting the signal cancels the call. */
export async function streamPlayground(
  { operation, name, arguments: args, agent }: PlaygroundRequest,
  signal: AbortSignal,
  onEvent: (event: PlaygroundEvent) => void,
): Promise<void> {
  const rest = JSON.stringify({ operation, name, agent })
  await streamEvents('playground', {
    text: `${rest.slice(0, -1)},"arguments":${args}}`,
    signal,
    parse: parseExactly,
    onEvent,
    lostMessage: 'The connection was lost before the call ended.',
  })
}

/** Answers a request from a server: with a result, or with the reason for a refusal. */
export const answerAsk = (id: string, answer: { readonly result: unknown } | { readonly error: string }) =>
  request<void>(`playground/${encodeURIComponent(id)}/answer`, { method: 'POST', body: answer })

export interface CompletionRequest {
  readonly kind: 'prompt' | 'resource'
  readonly name: string
  readonly argument: { readonly name: string; readonly value: string }
  readonly context: Readonly<Record<string, string>>
}

export const complete = (body: CompletionRequest, signal: AbortSignal) =>
  request<CompletionView>('completions', { method: 'POST', body, signal })

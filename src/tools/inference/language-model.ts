import type { ChatMessage } from '../../core/chat.ts'

/** A language model as far as these tools need one; the models of the chat loop are such. */
export interface LanguageModel {
  readonly name: string
  /** Tells the answer as it comes, `end` last. Throws a `ToolwayError`, or the signal's reason. */
  complete(request: CompletionRequest): AsyncIterable<Told>
}

export interface CompletionRequest {
  readonly messages: readonly ChatMessage[]
  readonly signal: AbortSignal
  readonly maxTokens?: number
  readonly temperature?: number
  /** What the answer has to look like. */
  readonly constraint?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> }
}

/** What a model tells; other kinds are passed over. */
export type Told =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking' | 'call' }
  | {
      readonly kind: 'end'
      readonly reason: string
      readonly usage?: { readonly promptTokens: number; readonly completionTokens: number }
      /** Makes of a value that fits the constraint as it was sent one that fits it as it was asked for. */
      restore(value: unknown): unknown
    }

export interface Completion {
  readonly text: string
  readonly finish_reason: string
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number }
  restore(value: unknown): unknown
}

/** Asks for one answer and waits for all of it. */
export async function completionOf(model: LanguageModel, request: CompletionRequest): Promise<Completion> {
  const texts: string[] = []
  let end: Extract<Told, { kind: 'end' }> | undefined
  for await (const told of model.complete(request)) {
    if (told.kind === 'text') texts.push(told.text)
    if (told.kind === 'end') end = told
  }
  const { reason = 'unknown', usage, restore = (value: unknown) => value } = end ?? {}
  return {
    text: texts.join(''),
    finish_reason: reason,
    ...(usage && { usage: { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens } }),
    restore,
  }
}

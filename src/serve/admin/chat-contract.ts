/** GET chat: what one can talk to. */
export interface ChatView {
  /** By their names in the configuration, the usual one first; none where none is configured. */
  readonly models: readonly string[]
}

/**
 * POST chat { messages, model?, mode?, agent? } answers with a stream of server-sent events; each `data:` is one
 * of these. It begins with `start` and ends with `end` or `error`. Closing it stops the answer.
 */
export type ChatStreamEvent =
  /** The id joins the calls of the answer in audit, as their parent. */
  | { readonly kind: 'start'; readonly id: string; readonly model: string }
  | { readonly kind: 'stage'; readonly stage: ChatStage; readonly round: number }
  | {
      readonly kind: 'call'
      readonly call: string
      readonly name: string
      readonly server: string
      readonly arguments: unknown
    }
  | {
      readonly kind: 'result'
      readonly call: string
      readonly isError: boolean
      readonly durationMs: number
      readonly text: string
    }
  | { readonly kind: 'text' | 'thinking'; readonly text: string }
  | {
      readonly kind: 'end'
      readonly reason: string
      readonly model: string
      readonly usage: { readonly promptTokens: number; readonly completionTokens: number }
      /** Fall-backs that were taken, each in a sentence. */
      readonly notes: readonly string[]
    }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }

export type ChatStage = 'discover' | 'select' | 'call' | 'execute' | 'interpret' | 'answer'

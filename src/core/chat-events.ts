export type ChatEvent =
  /**
   * The loop enters a stage; rounds count from 1. `atMs` is the time since the answer began, `usage` the tokens used so
   * far: what a stage took is the difference to the next stage or to the end.
   */
  | {
      readonly kind: 'stage'
      readonly stage: ChatStage
      readonly round: number
      readonly atMs?: number
      readonly usage?: TokenUsage
    }
  /**
   * A tool is about to run. `name` is its served name; the event with its result has the same `call`. `id` identifies
   * the call in the call log, audit and traces, while `call` is the model's id.
   */
  | {
      readonly kind: 'call'
      readonly call: string
      readonly id?: string
      readonly name: string
      readonly server: string
      readonly arguments: unknown
    }
  /** A tool returned a result or an error. `text` is the beginning of what the model receives, about one line. */
  | {
      readonly kind: 'result'
      readonly call: string
      readonly isError: boolean
      readonly durationMs: number
      readonly text: string
    }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string }
  | ChatEnd

export type ChatStage = 'discover' | 'select' | 'call' | 'execute' | 'interpret' | 'answer'

interface TokenUsage {
  readonly promptTokens: number
  readonly completionTokens: number
}

export interface ChatEnd {
  readonly kind: 'end'
  /** Why the answer ended. `calls` means that the client must run the calls in `handed` and send their results. */
  readonly reason: 'stop' | 'length' | 'calls' | 'filtered' | 'steps'
  readonly handed: readonly FunctionCall[]
  readonly usage: TokenUsage
  /** The duration of the answer. */
  readonly durationMs?: number
  readonly model: string
  /** The fallbacks that were used, one sentence each. */
  readonly notes: readonly string[]
}

/** A call as a model makes it: the arguments are text that may not be valid JSON. */
export interface FunctionCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
  /** What the model server added to the call. Gemini requires it back, together with the result. */
  readonly extra_content?: unknown
}

import type { Caller, Peer } from './call.ts'
import type { TraceContext } from './trace-context.ts'

/** Answers conversations and uses tools automatically (S3, J5). */
export interface Chat {
  /** Models that can be requested, by their names in the configuration; the default is first. */
  models(): readonly string[]
  /**
   * Streams the answer; `end` is the last event. Faults of a model or a tool end in an answer or in the fallback that
   * S5 names; throws a `ToolwayError` only if there is nothing to answer with. To stop the model and all calls, stop
   * reading or abort the signal.
   */
  answer(request: ChatRequest): AsyncIterable<ChatEvent>
}

export interface ChatRequest {
  /** The parent of the answer's calls in audit and traces. */
  readonly id: string
  readonly caller: Caller
  readonly peer: Peer
  readonly signal: AbortSignal
  readonly trace?: TraceContext
  /** A name of the configuration; defaults to `chat.model`. */
  readonly model?: string
  /** Overrides `chat.mode`. */
  readonly mode?: 'staged' | 'agent'
  readonly messages: readonly ChatMessage[]
  /** Tools that the client runs: offered beside the catalog, returned as `handed` calls. */
  readonly tools?: readonly OfferedTool[]
  /** `none` disables all tools, the client's and ours. */
  readonly toolChoice?: 'auto' | 'none' | 'required'
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly temperature?: number
  /** Restricts the tools to these patterns (`server.tool`, with `*`). */
  readonly only?: readonly string[]
  /** Overrides `chat.maxSteps`. */
  readonly maxSteps?: number
  /** Overrides `chat.codeExecution`. Inbound protocols must not set it. */
  readonly codeExecution?: false | { readonly environment?: string; readonly timeoutMs?: number }
}

export type ChatEvent =
  /** The loop enters a stage; rounds count from 1. */
  | { readonly kind: 'stage'; readonly stage: ChatStage; readonly round: number }
  /** A tool is about to run; `name` is its served name, `call` the id of its result. */
  | {
      readonly kind: 'call'
      readonly call: string
      readonly name: string
      readonly server: string
      readonly arguments: unknown
    }
  /** A tool returned a result or an error. `text` is what the model receives, cut to about a line. */
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

export interface ChatEnd {
  readonly kind: 'end'
  /** `calls`: the client must run `handed` and send the results. */
  readonly reason: 'stop' | 'length' | 'calls' | 'filtered' | 'steps'
  readonly handed: readonly FunctionCall[]
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number }
  readonly model: string
  /** Fallbacks that were taken, one sentence each. */
  readonly notes: readonly string[]
}

/** In OpenAI's format. */
export interface OfferedTool {
  readonly name: string
  readonly description?: string
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A call as a model makes it: the arguments are text that may not be valid JSON. */
export interface FunctionCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** In OpenAI's format. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string | readonly ContentPart[] }
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly FunctionCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }

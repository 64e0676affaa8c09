import type { Caller, Peer } from './call.ts'
import type { TraceContext } from './trace-context.ts'

/** A conversation in, an answer out, the tools invisible (S3, J5). All that doors and the command line hold of it. */
export interface Chat {
  /** The models that may be asked for, by their names in the configuration; the one that answers by default is first. */
  models(): readonly string[]
  /**
   * Answers, and tells it as it comes; `end` is the last that is told. What a model or a tool does wrong ends in an
   * answer or in the fall-back that S5 names; only what leaves nothing to answer with is thrown, as a `ToolwayError`.
   * Whoever stops reading, or aborts the signal, stops the model and every call under way.
   */
  answer(request: ChatRequest): AsyncIterable<ChatEvent>
}

export interface ChatRequest {
  /** Joins the calls of this answer in audit and traces, as their parent. */
  readonly id: string
  readonly caller: Caller
  /** Where the caller can be asked for a person's yes. */
  readonly peer: Peer
  readonly signal: AbortSignal
  readonly trace?: TraceContext
  /** By its name in the configuration; the one of `chat.model` otherwise. */
  readonly model?: string
  /** Instead of `chat.mode`. */
  readonly mode?: 'staged' | 'agent'
  readonly messages: readonly ChatMessage[]
  /** Tools that the client runs itself: offered beside the catalog, told back as `handed` calls. */
  readonly tools?: readonly OfferedTool[]
  /** `none` keeps every tool away, the client's and ours. */
  readonly toolChoice?: 'auto' | 'none' | 'required'
  /** Whether the answer is wanted piece by piece. */
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly temperature?: number
  /** Only tools that one of these patterns (`server.tool`, with `*`) fits; all that the caller may use otherwise. */
  readonly only?: readonly string[]
  /** Instead of `chat.maxSteps`. */
  readonly maxSteps?: number
  /** Offers `execute_code`, or keeps it away, instead of what `chat.codeExecution` says. Not for doors to fill in. */
  readonly codeExecution?: false | { readonly environment?: string; readonly timeoutMs?: number }
}

/** What an answer is made of, in the order it happens. */
export type ChatEvent =
  /** The loop has come to a stage, in its n-th round (from 1). */
  | { readonly kind: 'stage'; readonly stage: ChatStage; readonly round: number }
  /** A tool is about to run; `name` is its served name, `call` the id that its answer comes under. */
  | {
      readonly kind: 'call'
      readonly call: string
      readonly name: string
      readonly server: string
      readonly arguments: unknown
    }
  /** A tool has answered. An error is a result, too. `text` is what the model is told, cut to a line's worth. */
  | {
      readonly kind: 'result'
      readonly call: string
      readonly isError: boolean
      readonly durationMs: number
      readonly text: string
    }
  /** A piece of the answer. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string }
  | ChatEnd

export type ChatStage = 'discover' | 'select' | 'call' | 'execute' | 'interpret' | 'answer'

export interface ChatEnd {
  readonly kind: 'end'
  /** `calls`: the client is to run `handed` and to come back with their results. */
  readonly reason: 'stop' | 'length' | 'calls' | 'filtered' | 'steps'
  /** Calls of the client's own tools. */
  readonly handed: readonly FunctionCall[]
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number }
  /** The name of the model that answered. */
  readonly model: string
  /** Fall-backs that were taken, each in a sentence. */
  readonly notes: readonly string[]
}

/** A tool in the form that OpenAI gave it. */
export interface OfferedTool {
  readonly name: string
  readonly description?: string
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A call as a model makes it: its arguments are text that may be anything but JSON. */
export interface FunctionCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A part of a conversation, in the words of OpenAI. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string | readonly ContentPart[] }
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly FunctionCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }

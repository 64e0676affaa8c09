import type { Caller, Peer } from './call.ts'
import type { ChatEvent, FunctionCall } from './chat-events.ts'
import type { TraceContext } from './trace-context.ts'

export type * from './chat-events.ts'

/** Answers the messages in a conversation, and calls tools as needed (S3, J5). */
export interface Chat {
  /** The names of the configured models; the default model comes first. */
  models(): readonly string[]
  /** The models among them that accept images. */
  visionModels(): readonly string[]
  /**
   * Streams the answer; `end` is the last event. If a model or a tool fails, the stream still ends with an answer or
   * with the fallback that S5 specifies. Throws a `ToolwayError` only if there is nothing to answer with. To stop the
   * model and all calls, stop reading or abort the signal.
   */
  answer(request: ChatRequest): AsyncIterable<ChatEvent>
}

export interface ChatRequest {
  /** The id of this request, which audit and traces show as the parent of its tool calls. */
  readonly id: string
  readonly caller: Caller
  readonly peer: Peer
  readonly signal: AbortSignal
  readonly trace?: TraceContext
  /** The name of a model in the configuration; defaults to `chat.model`. */
  readonly model?: string
  /** Overrides `chat.mode`. */
  readonly mode?: 'staged' | 'agent'
  readonly messages: readonly ChatMessage[]
  /** Tools that the client runs itself, in addition to the catalog's tools. Calls to them are returned in `handed`. */
  readonly tools?: readonly OfferedTool[]
  /** `none` disables all tools, both the client's and the catalog's. A named tool is one of the client's. */
  readonly toolChoice?: 'auto' | 'none' | 'required' | NamedTool
  /** `false` means that the client takes only one call at a time. */
  readonly parallelToolCalls?: boolean
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

/** Offers the model only this tool, which it must call once. */
export interface NamedTool {
  readonly tool: string
}

/** In OpenAI's format. */
export interface OfferedTool {
  readonly name: string
  readonly description?: string
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A model's reasoning in the members in which its server sent it. Some servers require it back with the results. */
export interface Reasoning {
  readonly reasoning_content?: string
  readonly reasoning?: string
  readonly reasoning_details?: readonly unknown[]
}

/** In OpenAI's format. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string | readonly ContentPart[] }
  | ({
      readonly role: 'assistant'
      readonly content: string | null
      readonly tool_calls?: readonly FunctionCall[]
    } & Reasoning)
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }

/** Maximum length of a quote from an unusable answer. */
const maxQuoted = 4_000

/** Quotes an unusable answer, says why it is unusable (a sentence) and asks the model to answer again. */
export const correctionMessages = (answer: string, problem: string): readonly ChatMessage[] => [
  // Some chat templates require alternating roles and non-empty messages, so always send some text.
  { role: 'assistant', content: answer.trim() === '' ? '(nothing)' : answer.slice(0, maxQuoted).toWellFormed() },
  { role: 'user', content: `Your answer is invalid. ${problem} Answer again in the requested format.` },
]

import type { ChatMessage, FunctionCall, Reasoning } from '../../core/chat.ts'
import type { JsonSchemaObject } from '../constrain/schema.ts'
import type { CallableTool } from '../constrain/stage-schemas.ts'

export interface Model extends AsyncDisposable {
  /** The model's name in the configuration. */
  readonly name: string
  /** Whether the model accepts images, according to the configuration. */
  readonly vision?: boolean
  /**
   * Streams one answer; the last delta is `end`. Ending the iteration or aborting the signal stops the model. Throws
   * `ToolwayError`, or the signal's reason.
   */
  complete(request: ModelRequest): AsyncIterable<Delta>
}

interface CommonRequest {
  readonly messages: readonly ChatMessage[]
  /** The principal of the caller. No caller may fill the queue of a model that runs in this process. */
  readonly owner?: string
  readonly signal: AbortSignal
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly temperature?: number
  /** `false` asks for at most one call. */
  readonly parallelToolCalls?: boolean
}

/** A request to a model, with tools or a constraint. If a request has both, servers refuse it or ignore one of them. */
export type ModelRequest = CommonRequest &
  (
    | { readonly tools?: undefined; readonly constraint?: undefined }
    | { readonly tools: readonly CallableTool[]; readonly toolChoice?: ToolChoice; readonly constraint?: undefined }
    | { readonly constraint: Constraint; readonly tools?: undefined }
  )

export type ToolChoice = 'auto' | 'required'

/** The schema that an answer must match. */
export interface Constraint {
  /** Name of the schema: letters, digits, `_` and `-`. */
  readonly name: string
  readonly schema: JsonSchemaObject
  /** Describes the schema to a server that does not enforce it. Empty: nothing does. Default: a text with the schema. */
  readonly instruction?: string | undefined
}

export type Delta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string }
  /** A complete call. Its arguments are unparsed text. */
  | { readonly kind: 'call'; readonly call: FunctionCall }
  | AnswerEnd

export interface AnswerEnd {
  readonly kind: 'end'
  readonly reason: EndReason
  readonly usage?: Usage
  /** The reasoning, to send back together with the results of the calls. */
  readonly reasoning?: Reasoning
  /** The form in which the constraint was sent to the server. */
  readonly form?: ConstraintForm
  /** Converts a value from the form in which the constraint was sent to the requested schema. */
  restore(value: unknown): unknown
}

/** Why an answer ended. `length` means that the model reached a limit, `interrupted` that its server sent no end. */
export type EndReason = 'stop' | 'length' | 'calls' | 'filtered' | 'interrupted' | 'unknown'

export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
}

/** Ways to enforce a schema, strongest first. */
export const constraintForms = ['strict', 'schema', 'grammar', 'json_object', 'prompt'] as const

export type ConstraintForm = (typeof constraintForms)[number]

export interface ModelAnswer extends Omit<AnswerEnd, 'kind'> {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly FunctionCall[]
}

export const collectAnswer = async (deltas: AsyncIterable<Delta>): Promise<ModelAnswer> =>
  answerFrom(await Array.fromAsync(deltas))

export function answerFrom(deltas: readonly Delta[]): ModelAnswer {
  const end = deltas.find((delta) => delta.kind === 'end')
  const joined = (kind: 'text' | 'thinking') =>
    deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('')
  return {
    reason: end?.reason ?? 'unknown',
    usage: end?.usage,
    reasoning: end?.reasoning,
    form: end?.form,
    restore: (value) => (end ? end.restore(value) : value),
    text: joined('text'),
    thinking: joined('thinking'),
    calls: deltas.flatMap((delta) => (delta.kind === 'call' ? [delta.call] : [])),
  }
}

import type { ChatMessage, FunctionCall } from '../../core/chat.ts'
import type { JsonSchemaObject } from '../constrain/schema.ts'
import type { CallableTool } from '../constrain/stage-schemas.ts'

/** A language model, wherever it runs. */
export interface Model extends AsyncDisposable {
  /** Its name in the configuration. */
  readonly name: string
  /**
   * Asks for one answer and tells it as it comes; `end` is the last that is told. Whoever stops reading, or aborts the
   * signal, stops the model. Failures are thrown as `ToolwayError`, an abort as the signal's reason.
   */
  complete(request: ModelRequest): AsyncIterable<Delta>
}

interface Asked {
  readonly messages: readonly ChatMessage[]
  readonly signal: AbortSignal
  /** Whether the answer is wanted piece by piece. */
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly temperature?: number
}

/** Tools and a constraint never go together: servers refuse that, or drop one of them without a word. */
export type ModelRequest = Asked &
  (
    | { readonly tools?: undefined; readonly constraint?: undefined }
    | {
        readonly tools: readonly CallableTool[]
        readonly toolChoice?: 'auto' | 'required'
        readonly constraint?: undefined
      }
    | { readonly constraint: Constraint; readonly tools?: undefined }
  )

/** What an answer has to look like. */
export interface Constraint {
  /** A name for it, of letters, digits, `_` and `-`. */
  readonly name: string
  readonly schema: JsonSchemaObject
}

/** What a model tells. */
export type Delta =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking'; readonly text: string }
  /** A call, whole. Its arguments are text that may be anything but JSON. */
  | { readonly kind: 'call'; readonly call: FunctionCall }
  | End

export interface End {
  readonly kind: 'end'
  readonly reason: EndReason
  readonly usage?: Usage
  /** In which form the constraint was sent. */
  readonly form?: ConstraintForm
  /** Makes of a value that fits the constraint as it was sent one that fits it as it was asked for. */
  restore(value: unknown): unknown
}

/** Why an answer ended; `length` where it was cut off. */
export type EndReason = 'stop' | 'length' | 'calls' | 'filtered' | 'unknown'

export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
}

/** Ways to hold a model to a schema, the strongest first. */
export const constraintForms = ['strict', 'schema', 'grammar', 'json_object', 'prompt'] as const

export type ConstraintForm = (typeof constraintForms)[number]

/** An answer, whole. */
export interface ModelAnswer extends Omit<End, 'kind'> {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly FunctionCall[]
}

/** Waits for a whole answer. */
export async function collectAnswer(deltas: AsyncIterable<Delta>): Promise<ModelAnswer> {
  const all: Delta[] = []
  for await (const delta of deltas) all.push(delta)
  return answerFrom(all)
}

/** An answer of which all has been told. */
export function answerFrom(deltas: readonly Delta[]): ModelAnswer {
  const end = deltas.find((delta) => delta.kind === 'end') ?? { reason: 'unknown', restore: (value) => value }
  const joined = (kind: 'text' | 'thinking') =>
    deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('')
  return {
    reason: end.reason,
    restore: (value) => end.restore(value),
    ...('usage' in end && { usage: end.usage }),
    ...('form' in end && { form: end.form }),
    text: joined('text'),
    thinking: joined('thinking'),
    calls: deltas.flatMap((delta) => (delta.kind === 'call' ? [delta.call] : [])),
  }
}

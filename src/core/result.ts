import type { ToolwayError } from './errors.ts'
import { Json } from './json.ts'

/** What a call came to. A tool that reports failure (`isError`) has still produced a result. */
export interface Result {
  readonly body: Json<ResultBody>
  readonly isError: boolean
  /** It has none of the members by which eras differ: whoever hands it on need not look for them. */
  readonly plain?: true
  /** For listings: what the record of them tells. */
  readonly listing?: Listing
  /** What was refused, where the result tells it in a form of its own. */
  readonly refusal?: ToolwayError
  /** What a scan found in it, by kind. */
  readonly findings?: readonly string[]
  /** It was not fetched for this call: it had been kept, or another call that asked for the same has brought it. */
  readonly cached?: true
}

/** How many were asked for by name, how many are shown, and what they cost a model. */
export interface Listing {
  readonly requested?: number
  readonly returned: number
  readonly tokens?: number
}

/** The result object of `tools/call`, `resources/read` or `prompts/get`; every field may be present, unknown ones too. */
export interface ResultBody {
  readonly content?: readonly Content[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

export interface Content {
  readonly type: string
  readonly [field: string]: unknown
}

export const resultOf = (body: ResultBody): Result => ({ body: Json.of(body), isError: body.isError === true })

/** A failure of our own as a tool result: a sentence that a model can act on, and the code for programs (E1). */
export const refusedResult = (error: ToolwayError): Result => ({
  ...resultOf({
    content: [{ type: 'text', text: error.message }],
    isError: true,
    _meta: { 'dev.toolway/error': error.data },
  }),
  refusal: error,
})

export const textResult = (text: string): Result => resultOf({ content: [{ type: 'text', text }] })

/** An answer for programs and for models alike: structured content, and the same as JSON text. */
export const structuredResult = (value: object): Result =>
  resultOf({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value })

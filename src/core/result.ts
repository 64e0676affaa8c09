import { Json } from '../json/json.ts'
import { jsonValue, wellFormedJson } from '../json/parse-json.ts'
import type { ToolwayError } from './errors.ts'

/** The result of a call. A tool that reports a failure (`isError`) also returns a result. */
export interface Result {
  readonly body: Json<ResultBody>
  readonly isError: boolean
  /** Set if no member of the body differs between legacy and modern revisions, so that it needs no conversion. */
  readonly plain?: true
  readonly listing?: Listing
  /** The refusal, if this result reports one in its own format. */
  readonly refusal?: ToolwayError
  /** The kinds of suspicious content that the result scan found. */
  readonly findings?: readonly string[]
  /** Set if the result came from the cache, or from an identical call that ran at the same time. */
  readonly cached?: true
}

export interface Listing {
  readonly requested?: number
  readonly available?: number
  readonly returned: number
  readonly tokens?: number
}

/** The result object of `tools/call`, `resources/read` or `prompts/get`, including unknown fields. */
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

/** One of our own errors as a tool result: a message for the model, and the code for programs (E1). */
export const refusedResult = (error: ToolwayError): Result => ({
  ...resultOf({
    content: [{ type: 'text', text: error.message }],
    isError: true,
    _meta: { 'dev.toolway/error': error.data },
  }),
  refusal: error,
})

/** Lone surrogates are replaced: many JSON parsers refuse the whole message. */
export const textResult = (text: string): Result => resultOf({ content: [{ type: 'text', text: text.toWellFormed() }] })

/** A result with structured content, and the same content as JSON text for models. Lone surrogates are replaced. */
export function structuredResult(value: object): Result {
  const json = JSON.stringify(value)
  const text = wellFormedJson(json)
  const structuredContent = text === json ? value : jsonValue(text)
  return resultOf({ content: [{ type: 'text', text }], structuredContent })
}

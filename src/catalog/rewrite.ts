import { Json } from '../core/json.ts'
import type { ResultBody } from '../core/result.ts'
import { elements, members, type Span, valueAt } from './spans.ts'

/**
 * A result as callers may see it: resource links, embedded resources and read contents carry served URIs, so that
 * a caller can read them through the gateway. `served` turns a URI of the result's server into its served form.
 * Only the bytes of those URIs change; a result that mentions no `"uri"` is handed back as it is, unparsed.
 */
export function servedResult(body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> {
  const { bytes } = body
  if (!bytes.includes('"uri"')) return body
  const pieces: Buffer[] = []
  let from = 0
  for (const span of uris(bytes)) {
    const original = stringAt(bytes, span)
    if (original === undefined) continue
    const replacement = served(original)
    if (replacement === original) continue
    pieces.push(bytes.subarray(from, span.start), Buffer.from(JSON.stringify(replacement)))
    from = span.end
  }
  if (pieces.length === 0) return body
  pieces.push(bytes.subarray(from))
  return Json.raw<ResultBody>(Buffer.concat(pieces))
}

function* uris(bytes: Buffer): Generator<Span> {
  for (const { key, value } of members(bytes, valueAt(bytes, 0))) {
    if (key === 'content') for (const block of elements(bytes, value)) yield* urisOfBlock(bytes, block)
    if (key === 'contents') for (const content of elements(bytes, value)) yield* urisOfResource(bytes, content)
    if (key === 'messages') for (const message of elements(bytes, value)) yield* urisOfMessage(bytes, message)
  }
}

function* urisOfMessage(bytes: Buffer, message: Span): Generator<Span> {
  for (const { key, value } of members(bytes, message)) {
    if (key !== 'content') continue
    yield* urisOfBlock(bytes, value)
    for (const block of elements(bytes, value)) yield* urisOfBlock(bytes, block)
  }
}

function* urisOfBlock(bytes: Buffer, block: Span): Generator<Span> {
  const fields = new Map([...members(bytes, block)].map(({ key, value }) => [key, value]))
  const type = fields.get('type')
  const kind = type && stringAt(bytes, type)
  const uri = fields.get('uri')
  const resource = fields.get('resource')
  if (kind === 'resource_link' && uri) yield uri
  if (kind === 'resource' && resource) yield* urisOfResource(bytes, resource)
}

function* urisOfResource(bytes: Buffer, resource: Span): Generator<Span> {
  for (const { key, value } of members(bytes, resource)) if (key === 'uri') yield value
}

function stringAt(bytes: Buffer, span: Span): string | undefined {
  if (bytes[span.start] !== 0x22) return undefined
  try {
    return JSON.parse(bytes.toString('utf8', span.start, span.end)) as string
  } catch {
    return undefined
  }
}

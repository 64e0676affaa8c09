import { Json } from '../core/json.ts'
import type { ResultBody } from '../core/result.ts'
import { elements, members } from '../wire/scan.ts'

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
  for (const uri of urisOfResult(bytes)) {
    if (uri[0] !== 0x22) continue
    const original = JSON.parse(uri.toString('utf8')) as string
    const replacement = served(original)
    if (replacement === original) continue
    // Every URI found is a slice of the result, so its place follows from where both begin.
    const at = uri.byteOffset - bytes.byteOffset
    pieces.push(bytes.subarray(from, at), Buffer.from(JSON.stringify(replacement)))
    from = at + uri.length
  }
  if (pieces.length === 0) return body
  pieces.push(bytes.subarray(from))
  return Json.raw<ResultBody>(Buffer.concat(pieces))
}

function* urisOfResult(bytes: Buffer): Generator<Buffer> {
  for (const [key, value] of members(bytes) ?? []) {
    if (key === 'content') for (const block of elements(value) ?? []) yield* urisOfBlock(block)
    if (key === 'contents') for (const content of elements(value) ?? []) yield* urisOfResource(content)
    if (key === 'messages') for (const message of elements(value) ?? []) yield* urisOfMessage(message)
  }
}

function* urisOfMessage(message: Buffer): Generator<Buffer> {
  const content = members(message)?.get('content')
  if (content) for (const block of elements(content) ?? [content]) yield* urisOfBlock(block)
}

function* urisOfBlock(block: Buffer): Generator<Buffer> {
  const fields = members(block)
  const type = fields?.get('type')?.toString('latin1')
  const uri = fields?.get('uri')
  const resource = fields?.get('resource')
  if (type === '"resource_link"' && uri) yield uri
  if (type === '"resource"' && resource) yield* urisOfResource(resource)
}

function* urisOfResource(resource: Buffer): Generator<Buffer> {
  const uri = members(resource)?.get('uri')
  if (uri) yield uri
}

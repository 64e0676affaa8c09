import { Json } from '../../core/json.ts'
import type { ResultBody } from '../../core/result.ts'
import { elements, members } from '../../lib/json-text/scan.ts'
import { bytesOf, type Replacement, splice, textOf } from '../../wire/bytes.ts'

/**
 * Rewrites URIs in resource links, embedded resources and read contents, so that callers can read them through the
 * gateway. `served` maps a URI of the server to its served form. Only the bytes of those URIs change; a result without
 * `"uri"` is returned unparsed.
 */
export const servedResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, urisOfResult)

/** The same for a task, which may contain the result of the call that started it. */
export const servedTaskResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, (bytes) => {
    const result = members(bytes)?.get('result')
    const uris = [...urisOfResult(bytes), ...(result ? urisOfResult(result) : [])]
    return uris.sort((a, b) => a.byteOffset - b.byteOffset)
  })

function withServedUris(
  body: Json<ResultBody>,
  served: (uri: string) => string,
  urisOf: (bytes: Buffer) => Iterable<Buffer>,
): Json<ResultBody> {
  const { bytes } = body
  if (!bytes.includes('"uri"')) return body
  const replacements: Replacement[] = []
  for (const uri of urisOf(bytes)) {
    const original = textOf(uri)
    if (original === undefined || served(original) === original) continue
    replacements.push([uri, bytesOf(served(original))])
  }
  return replacements.length === 0 ? body : Json.raw<ResultBody>(splice(bytes, replacements))
}

/** Upper bound for blocks: scanning millions of them would block the event loop. */
const maxBlocks = 20_000

const blocksOf = (list: Buffer): readonly Buffer[] => elements(list, maxBlocks) ?? []

function* urisOfResult(bytes: Buffer): Generator<Buffer> {
  for (const [key, value] of members(bytes) ?? []) {
    if (key === 'content') for (const block of blocksOf(value)) yield* urisOfBlock(block)
    if (key === 'contents') for (const content of blocksOf(value)) yield* urisOfResource(content)
    if (key === 'messages') for (const message of blocksOf(value)) yield* urisOfMessage(message)
  }
}

function* urisOfMessage(message: Buffer): Generator<Buffer> {
  const content = members(message)?.get('content')
  if (content) for (const block of elements(content, maxBlocks) ?? [content]) yield* urisOfBlock(block)
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

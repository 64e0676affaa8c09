import type { ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { elements, members } from '../../json/json-text.ts'
import { bytesOf, type Replacement, splice, textOf } from '../../wire/bytes.ts'
import { unambiguous } from '../../wire/check-members.ts'

/**
 * Rewrites the URIs in resource links, embedded resources and resource contents to those that callers use (`served`).
 * Only the bytes of those URIs change. A result without `"uri"` is returned unparsed, unless it has escapes: only they
 * allow another spelling.
 */
export const servedResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, urisOfResult)

/** Rewrites the URIs in a task, which may contain the result of the call that started it. */
export const servedTaskResult = (body: Json<ResultBody>, served: (uri: string) => string): Json<ResultBody> =>
  withServedUris(body, served, (bytes) => {
    const result = unambiguous(bytes, ['result']).get('result')
    const uris = [...urisOfResult(bytes), ...(result ? urisOfResult(result) : [])]
    return uris.sort((a, b) => a.byteOffset - b.byteOffset)
  })

type UrisOf = (bytes: Buffer) => Iterable<Buffer>

export const mayHaveUris = (bytes: Buffer): boolean => bytes.includes('"uri"') || bytes.includes('\\u')

export function withServedUris(
  body: Json<ResultBody>,
  served: (uri: string) => string,
  urisOf: UrisOf,
): Json<ResultBody> {
  const { bytes } = body
  if (!mayHaveUris(bytes)) return body
  const replacements: Replacement[] = []
  for (const uri of urisOf(bytes)) {
    const original = textOf(uri)
    const replaced = original === undefined ? undefined : served(original)
    if (replaced !== undefined && replaced !== original) replacements.push([uri, bytesOf(replaced)])
  }
  return replacements.length === 0 ? body : Json.raw<ResultBody>(splice(bytes, replacements))
}

const blocksOf = (list: Buffer): readonly Buffer[] => elements(list) ?? []

function* urisOfResult(bytes: Buffer): Generator<Buffer> {
  for (const [key, value] of members(bytes, ['content', 'contents', 'messages']) ?? []) {
    if (key === 'content') for (const block of blocksOf(value)) yield* urisOfBlock(block)
    if (key === 'contents') for (const content of blocksOf(value)) yield* urisOfResource(content)
    if (key === 'messages') for (const message of blocksOf(value)) yield* urisOfMessage(message)
  }
}

/** The URIs in a listed folder of a skill. */
export function* urisOfFolder(bytes: Buffer): Generator<Buffer> {
  const listed = unambiguous(bytes, ['resources']).get('resources')
  if (listed) for (const resource of blocksOf(listed)) yield* urisOfResource(resource)
}

function* urisOfMessage(message: Buffer): Generator<Buffer> {
  const content = unambiguous(message, ['content']).get('content')
  if (content) for (const block of elements(content) ?? [content]) yield* urisOfBlock(block)
}

function* urisOfBlock(block: Buffer): Generator<Buffer> {
  const fields = unambiguous(block, ['type', 'uri', 'resource'])
  const type = textOf(fields.get('type'))
  const uri = fields.get('uri')
  const resource = fields.get('resource')
  if (type === 'resource_link' && uri) yield uri
  if (type === 'resource' && resource) yield* urisOfResource(resource)
}

function* urisOfResource(resource: Buffer): Generator<Buffer> {
  const uri = unambiguous(resource, ['uri']).get('uri')
  if (uri) yield uri
}

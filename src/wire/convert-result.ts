import { CLOSE_OBJECT, members, OPEN_OBJECT, skipSpace, walk } from '../json/json-text.ts'
import { isRecord } from '../lib/is-record.ts'
import { type Pieces, splice } from './bytes.ts'
import { metaKeys } from './revisions.ts'

/** How long a list or resource may be cached, and whether callers may share the cached copy. */
export interface CacheHint {
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/**
 * Adds the members that stateless clients expect, unless they exist already: `resultType`, and a cache hint if one is
 * given and the result is complete. `plain` means that the result has none of these members.
 */
export function toModern(result: Buffer, hint?: CacheHint, plain = false): Pieces {
  const { resultType, ttlMs, cacheScope } = plain ? none : envelopeOf(result)
  const added: string[] = []
  if (resultType === undefined) added.push('"resultType":"complete"')
  if (hint !== undefined && (resultType === undefined || resultType === '"complete"')) {
    if (ttlMs === undefined) added.push(`"ttlMs":${hint.ttlMs}`)
    if (cacheScope === undefined) added.push(`"cacheScope":"${hint.cacheScope}"`)
  }
  if (added.length === 0) return [result]
  const after = result.indexOf(OPEN_OBJECT) + 1
  const empty = result[skipSpace(result, after)] === CLOSE_OBJECT
  const start = result.toString('latin1', 0, after)
  return [Buffer.from(`${start}${added.join()}${empty ? '' : ','}`), result.subarray(after)]
}

/**
 * Converts a result for session-based clients: removes `resultType`, the cache hint and the server info in `_meta`, and
 * makes structured content an object. A result without `resultType` is returned unchanged.
 */
export const toLegacy = (result: Buffer): Buffer =>
  envelopeOf(result).resultType === undefined
    ? result
    : withStructuredObject(withoutServerInfo(without(result, envelopeKeys)))

function withoutServerInfo(result: Buffer): Buffer {
  const meta = result.includes(metaKeys.serverInfo) ? members(result)?.get('_meta') : undefined
  return meta?.[0] === OPEN_OBJECT ? splice(result, [[meta, without(meta, serverInfoKey)]]) : result
}

/** Wraps structured content that is not an object, as the SDK does: session-based clients would reject the result. */
function withStructuredObject(result: Buffer): Buffer {
  if (!result.includes('"structuredContent"')) return result
  const value = members(result)?.get('structuredContent')
  if (value === undefined || value[0] === OPEN_OBJECT) return result
  return splice(result, [[value, Buffer.concat([Buffer.from('{"result":'), value, Buffer.from('}')])]])
}

/** An object without some of its members. The others keep their bytes. */
function without(object: Buffer, keys: ReadonlySet<string>): Buffer {
  const pieces: Buffer[] = []
  /** `from` is the end of the bytes processed so far, `kept` the end of the last member that stays. */
  let from = 0
  let kept: number | undefined
  let removing = false
  walk(object, (key, _start, end, keyStart) => {
    const goes = keys.has(key)
    if (goes && !removing) {
      // If no member before this one stays, the separator after this one is removed too.
      pieces.push(object.subarray(from, kept ?? keyStart))
    }
    if (!goes && removing && kept === undefined) from = keyStart
    if (goes) from = end
    else kept = end
    removing = goes
    return true
  })
  pieces.push(object.subarray(from))
  return Buffer.concat(pieces)
}

const envelopeKeys: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope'])
const serverInfoKey: ReadonlySet<string> = new Set([metaKeys.serverInfo])

const none: Envelope = {}

type Envelope = { -readonly [Key in 'resultType' | 'ttlMs' | 'cacheScope']?: string }

/** The raw values of `resultType`, `ttlMs` and `cacheScope`; the last one if a name is repeated, as in `JSON.parse`. */
function envelopeOf(result: Buffer): Envelope {
  const found: Envelope = {}
  // Fast path for most results: they have neither these names nor \u escapes that could hide them.
  const absent = !result.includes('"resultType"') && !result.includes('"ttlMs"') && !result.includes('"cacheScope"')
  if (absent && !result.includes('\\u')) return found
  walk(result, (key, start, end) => {
    if (envelopeKeys.has(key)) found[key as keyof Envelope] = result.toString('latin1', start, end)
    return true
  })
  return found
}

/** Whether a schema describes objects in a form that session-based clients can read. */
export function isObjectSchema(schema: unknown): boolean {
  if (!isRecord(schema) || schema.type !== 'object') return false
  const { properties, required } = schema
  return (
    (properties === undefined || (isRecord(properties) && Object.values(properties).every(isRecord))) &&
    (required === undefined || (Array.isArray(required) && required.every((name) => typeof name === 'string')))
  )
}

import { members, walk } from '../core/json-text/scan.ts'
import { CLOSE_OBJECT, OPEN_OBJECT, skipSpace } from '../core/json-text/skip.ts'
import { type Pieces, splice } from './bytes.ts'

/** How long, and by whom, a list or a resource may be kept. */
export interface CacheHint {
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/**
 * A result as clients of the stateless revision expect it: with `resultType`, and with a cache hint where one is
 * asked for. What the result has already stays, and only a complete one may be kept. Everything else is the same
 * bytes: the new members stand before it. Who knows that it has none of them says so with `plain`.
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
 * A result of the stateless revision as clients of the others expect it: without the envelope, and with structured
 * content that is an object. One that never had the envelope is handed back as it is.
 */
export const toLegacy = (result: Buffer): Buffer =>
  envelopeOf(result).resultType === undefined ? result : withStructuredObject(withoutEnvelope(result))

/** Clients that know only objects would refuse the whole result: any other value is put into one, as the SDK does. */
function withStructuredObject(result: Buffer): Buffer {
  if (!result.includes('"structuredContent"')) return result
  const value = members(result)?.get('structuredContent')
  if (value === undefined || value[0] === OPEN_OBJECT) return result
  return splice(result, [[value, Buffer.concat([Buffer.from('{"result":'), value, Buffer.from('}')])]])
}

function withoutEnvelope(result: Buffer): Buffer {
  const pieces: Buffer[] = []
  /** Up to where the bytes are dealt with, and where the last member that stays ends. */
  let from = 0
  let kept: number | undefined
  let removing = false
  walk(result, (key, _start, end, keyStart) => {
    const goes = envelopeKeys.has(key)
    if (goes && !removing) {
      // With nothing before it that stays, a member goes together with what separates it from the next.
      pieces.push(result.subarray(from, kept ?? keyStart))
    }
    if (!goes && removing && kept === undefined) from = keyStart
    if (goes) from = end
    else kept = end
    removing = goes
    return true
  })
  pieces.push(result.subarray(from))
  return Buffer.concat(pieces)
}

const envelopeKeys: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope'])

const none: Envelope = {}

type Envelope = { -readonly [Key in 'resultType' | 'ttlMs' | 'cacheScope']?: string }

/** The raw values of what the envelope consists of. Where a key occurs twice the last one counts, as for a parser. */
function envelopeOf(result: Buffer): Envelope {
  const found: Envelope = {}
  // Letters can otherwise only be spelt as \u escapes: most results of the legacy era are not read once more.
  const absent = !result.includes('"resultType"') && !result.includes('"ttlMs"') && !result.includes('"cacheScope"')
  if (absent && !result.includes('\\u')) return found
  walk(result, (key, start, end) => {
    if (envelopeKeys.has(key)) found[key as keyof Envelope] = result.toString('latin1', start, end)
    return true
  })
  return found
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a schema describes objects, in words that clients of the revisions with sessions can read. */
export function isObjectSchema(schema: unknown): boolean {
  if (!isObject(schema) || schema.type !== 'object') return false
  const { properties, required } = schema
  return (
    (properties === undefined || (isObject(properties) && Object.values(properties).every(isObject))) &&
    (required === undefined || (Array.isArray(required) && required.every((name) => typeof name === 'string')))
  )
}

/** What a server says about keeping a result (2026-07-28). */
export interface Hints {
  /** The result is one: nothing is missing, nothing was only begun. */
  readonly complete: boolean
  /** How long it may be kept; undefined where the server does not say. */
  readonly ttlMs?: number
  /** Who may share it; whatever is neither of the two is meant to be private. */
  readonly scope?: 'public' | 'private'
}

/** Finds the members of one JSON object, as slices; undefined for anything that is no object. */
export type Members = (bytes: Buffer) => ReadonlyMap<string, Buffer> | undefined

const nothing: Hints = { complete: true }

/** Reads what stands at the top of a result, and nothing else of it. */
export function hintsOf(body: Buffer, members: Members): Hints {
  if (!mayHold(body)) return nothing
  const found = members(body)
  // What cannot be read may say anything.
  if (found === undefined) return { complete: false }
  const type = found.get('resultType')
  const ttl = found.get('ttlMs')
  const scope = found.get('cacheScope')
  return {
    complete: type === undefined || type.equals(complete),
    ...(ttl && { ttlMs: millisecondsOf(ttl) }),
    ...(scope && { scope: scope.equals(everybody) ? 'public' : 'private' }),
  }
}

const complete = Buffer.from('"complete"')
const everybody = Buffer.from('"public"')

/** A native search is cheaper than reading. Letters can otherwise only be spelt as \u escapes. */
const mayHold = (body: Buffer): boolean =>
  body.includes('"resultType"') || body.includes('"ttlMs"') || body.includes('"cacheScope"') || body.includes('\\u')

/** Whatever is no time to keep something for is none at all. */
function millisecondsOf(bytes: Buffer): number {
  const text = bytes.toString('latin1')
  return /^[0-9]/.test(text) ? Number(text) : 0
}

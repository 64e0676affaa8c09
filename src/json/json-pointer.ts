import { decodePercent } from '../lib/url.ts'

/** Escapes a name as one step of a JSON Pointer (RFC 6901). */
export const escapeStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

export const unescapeStep = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

/** The value at a path of own members; undefined if there is none. */
export const valueAt = (root: unknown, names: readonly string[]): unknown =>
  names.reduce((place, name) => {
    const isThere = typeof place === 'object' && place !== null && Object.hasOwn(place, name)
    return isThere ? (place as Readonly<Record<string, unknown>>)[name] : undefined
  }, root)

/**
 * The value that a reference such as `#/$defs/x` names in its own document; undefined if there is none. Nothing is ever
 * fetched. As in a URL, the steps may be percent-encoded.
 */
export function resolveReference(root: unknown, reference: unknown): unknown {
  if (reference === '#') return root
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return undefined
  const steps = reference.slice(2).split('/')
  return valueAt(
    root,
    steps.map((step) => unescapeStep(decodePercent(step))),
  )
}

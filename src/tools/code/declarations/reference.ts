const maxPointer = 1000

/**
 * What a `$ref` leads to inside its own document; undefined for everything else. Nothing is ever fetched or read: a
 * server would decide what.
 */
export function referred(root: unknown, reference: string): unknown {
  if (reference.length > maxPointer) return undefined
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  let place: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = decoded(part)?.replaceAll('~1', '/').replaceAll('~0', '~')
    if (key === undefined || typeof place !== 'object' || place === null || !Object.hasOwn(place, key)) return undefined
    place = (place as Record<string, unknown>)[key]
  }
  return place
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

import { createHash } from 'node:crypto'

/**
 * An identifier for each name. A name that is one already is its own; any other is made one, with a part of its hash
 * behind it where that is taken or would be somebody else's too. What a name gets depends on the names, not on their order.
 */
export function identifiersOf(names: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...new Set(names)].sort()
  const identifiers = new Map<string, string>()
  const taken = new Set(all.filter(isIdentifier))
  for (const name of taken) identifiers.set(name, name)
  const others = all.filter((name) => !taken.has(name))
  const wanted = Map.groupBy(others, plain)
  for (const name of others) {
    const alone = wanted.get(plain(name))?.length === 1 && !taken.has(plain(name)) && !reserved.has(plain(name))
    const identifier = alone ? plain(name) : withHash(name, taken)
    taken.add(identifier)
    identifiers.set(name, identifier)
  }
  return identifiers
}

/** Properties that every object is asked for by the language itself: in a program these never name a tool. */
export const reserved: ReadonlySet<string> = new Set([
  'then',
  'toJSON',
  'toString',
  'valueOf',
  'constructor',
  'prototype',
  '__proto__',
])

const longest = 64

const isIdentifier = (name: string) => name.length <= longest && /^[A-Za-z_$][\w$]*$/.test(name) && !reserved.has(name)

const plain = (name: string): string => {
  const letters = name.slice(0, longest - 1).replaceAll(/[^\w$]/g, '_')
  return /^[A-Za-z_$]/.test(letters) ? letters : `_${letters}`
}

function withHash(name: string, taken: ReadonlySet<string>): string {
  const hash = createHash('sha256').update(name).digest('hex')
  for (let length = 6; ; length++) {
    const identifier = `${plain(name.slice(0, 40))}_${hash.slice(0, length)}`
    if (!taken.has(identifier) || length > hash.length) return identifier
  }
}

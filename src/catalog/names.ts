import { hash } from 'node:crypto'
import type { NamingConfig } from '../config/schema.ts'
import { metaSource } from '../core/source.ts'

/** The possible served names of an entry. They depend only on its server, its name and the naming configuration. */
export interface NameChoice {
  /** Readable names in order of preference. None of them looks like a hashed name. */
  readonly plain: readonly string[]
  /** Returns the name to use if no plain name is free. `attempt` 1 uses a longer hash, in case of a collision. */
  hashed(attempt: 0 | 1): string
  readonly badAlias?: string
  /** The usual name, if it cannot be used because it is the alias of another entry. */
  readonly reserved?: { readonly wanted: string; readonly winner: EntryName }
}

interface EntryName {
  readonly server: string
  readonly name: string
}

export type Namer = (server: string, name: string) => NameChoice

/** The built-in sources whose entries keep their names. Servers' entries cannot take these names. */
export const unprefixedSources: readonly string[] = [metaSource, 'native']

/**
 * Creates the function that names tools and prompts. The name consists of server, separator and tool if every model
 * vendor accepts it, apart from the separators `::` and `.`, otherwise of a readable part and a hash.
 */
export function createNamer(naming: NamingConfig): Namer {
  const { strategy, separator, maxLength } = naming
  const aliases = new Map(strategy === 'custom' ? Object.entries(naming.aliases) : [])
  // A configured alias is reserved for its entry, even while the entry is not available.
  const reservedFor = new Map([...aliases].map(([entry, alias]) => [alias, entryName(entry)]))
  const usable = (name: string) => isPlainName(name, maxLength)

  return (server, name) => {
    const joined = server + separator + name
    const accepted = server + separator.replace(/[:.]/g, '_') + name
    // The first separator must end the server name: otherwise `a` + `b__c` and `a__b` + `c` would collide.
    const bordered = joined.indexOf(separator) === server.length && usable(accepted)
    const winner = bordered ? reservedFor.get(joined) : undefined
    const prefixed = bordered && winner === undefined ? [joined] : []
    const reserved = winner && { reserved: { wanted: joined, winner } }
    const shortened = (text: string) => (attempt: 0 | 1) => makeHashedName(text, server, name, maxLength, attempt)

    if (unprefixedSources.includes(server) || strategy === 'flat') {
      return usable(name)
        ? { plain: [name, ...prefixed], hashed: shortened(joined) }
        : { plain: [], hashed: shortened(name) }
    }
    const alias = aliases.get(`${server}.${name}`)
    if (alias === undefined) return { plain: prefixed, hashed: shortened(joined), ...reserved }
    if (!usable(alias)) return { plain: prefixed, hashed: shortened(joined), badAlias: alias }
    return { plain: [alias, ...prefixed.filter((other) => other !== alias)], hashed: shortened(joined) }
  }
}

/** The entry that `server.tool` in the configuration means. */
function entryName(spelling: string): EntryName {
  const dot = spelling.indexOf('.')
  return { server: spelling.slice(0, dot), name: spelling.slice(dot + 1) }
}

/**
 * Whether an entry could have a served name that lacks its server: any name with `flat`, an alias, or a hashed name.
 */
export function couldBeNamed(server: string, name: string, { strategy, aliases }: NamingConfig): boolean {
  if (strategy === 'flat') return true
  const isAlias = ([entry, alias]: [string, string]) => alias === name && entry.startsWith(`${server}.`)
  if (strategy === 'custom' && Object.entries(aliases).some(isAlias)) return true
  if (!hashEnding.test(name)) return false
  const readable = name.replace(hashEnding, '')
  const sanitized = readableOf(server)
  return readable.startsWith(sanitized) || sanitized.startsWith(readable)
}

// The hash starts with a digit, so that names such as `get_document` do not look hashed.
const hashEnding = /_[2-7][a-z2-7]{7}(?:[a-z2-7]{4})?$/

/** Whether a name can be served unchanged. Names that look hashed cannot, so plain and hashed names never collide. */
const isPlainName = (name: string, maxLength: number): boolean =>
  name.length > 0 && name.length <= maxLength && /^[A-Za-z0-9_-]+$/.test(name) && !hashEnding.test(name)

function makeHashedName(text: string, server: string, name: string, maxLength: number, attempt: 0 | 1): string {
  const ending = `_${shortHash(server, name, attempt === 0 ? 8 : 12)}`
  const readable = readableOf(text).slice(0, maxLength - ending.length)
  return readable.replace(/[_-]+$/, '') + ending
}

const readableOf = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, '_')

function shortHash(server: string, name: string, length: number): string {
  // Hash the pair as JSON, which is unambiguous for any characters, including lone surrogates.
  const digest = hash('sha256', JSON.stringify([server, name]), 'buffer')
  let text = '234567'[(digest[0] as number) % 6] as string
  for (let at = 1; at < length; at++) text += 'abcdefghijklmnopqrstuvwxyz234567'[(digest[at] as number) & 31]
  return text
}

/** One entry's claim to a name, with its source's rank. */
export interface NameClaim {
  readonly server: string
  readonly name: string
  /** Entries with a lower tier choose first: meta-tools, then native tools, then servers. */
  readonly tier: number
  readonly priority: number
  readonly choice: NameChoice
}

export interface NameConflict {
  readonly server: string
  readonly name: string
  readonly wanted: string
  /** The entry that got the wanted name. Undefined if that name was invalid. */
  readonly winner: EntryName | undefined
  readonly served: string
}

/**
 * Gives each claim a unique name; the names are in the order of the claims. Plain names are assigned by tier, priority
 * and order. The remaining claims get hashed names, which cannot equal a plain one.
 */
export function assignNames(claims: readonly NameClaim[]): {
  names: readonly string[]
  conflicts: readonly NameConflict[]
} {
  const names = new Array<string>(claims.length)
  const holders = new Map<string, NameClaim>()
  const lost = new Map<number, { wanted: string; winner?: EntryName }>()
  const left: number[] = []

  const take = (index: number, claim: NameClaim, wanted: string): boolean => {
    const winner = holders.get(wanted)
    if (winner) {
      if (!lost.has(index)) lost.set(index, { wanted, winner })
      return false
    }
    holders.set(wanted, claim)
    names[index] = wanted
    return true
  }

  for (const index of rankClaims(claims)) {
    const claim = claims[index] as NameClaim
    const { badAlias, reserved } = claim.choice
    if (badAlias !== undefined) lost.set(index, { wanted: badAlias })
    else if (reserved) lost.set(index, reserved)
    if (!claim.choice.plain.some((name) => take(index, claim, name))) left.push(index)
  }

  // Sort by text: the configuration's order must not decide which of two colliding hashes stays short.
  left.sort((a, b) => compareText(claims[a] as NameClaim, claims[b] as NameClaim))
  for (const index of left) {
    const claim = claims[index] as NameClaim
    if (take(index, claim, claim.choice.hashed(0)) || take(index, claim, claim.choice.hashed(1))) continue
    throw new Error(`no unique name for ${claim.server} and ${claim.name}: two long hashes are equal`)
  }

  const conflicts = [...lost].map(([index, { wanted, winner }]) => {
    const { server, name } = claims[index] as NameClaim
    const holder = winner && { server: winner.server, name: winner.name }
    return { server, name, wanted, served: names[index] as string, winner: holder }
  })
  return { names, conflicts }
}

function rankClaims(claims: readonly NameClaim[]): number[] {
  const order = claims.map((_, index) => index)
  return order.sort((a, b) => {
    const first = claims[a] as NameClaim
    const second = claims[b] as NameClaim
    return first.tier - second.tier || second.priority - first.priority || a - b
  })
}

function compareText(a: NameClaim, b: NameClaim): number {
  if (a.server !== b.server) return a.server < b.server ? -1 : 1
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

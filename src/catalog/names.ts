import { createHash } from 'node:crypto'
import type { NamingConfig } from '../config/schema.ts'

/** What one entry may be called, best first, from its server, its name and the naming alone. */
export interface NameChoice {
  /** Readable names, in order of preference; none of them looks like a hashed one. */
  readonly plain: readonly string[]
  /** What it is called when no plain name is free; `attempt` 1 is the answer to a true collision of hashes. */
  hashed(attempt: 0 | 1): string
  /** Set when the operator's alias cannot be used. */
  readonly badAlias?: string
}

export type Namer = (server: string, name: string) => NameChoice

/** Our own sources: their entries are served under their own names, and no server's entry takes such a name away. */
export const ownSources: readonly string[] = ['toolway', 'native']

/**
 * Makes the rule that names tools and prompts. A name is server, separator and tool where that is a name every model
 * vendor takes; otherwise a readable remnant and a hash, so a separator of other characters only means hashed names.
 */
export function createNamer(naming: NamingConfig): Namer {
  const { strategy, separator, maxLength } = naming
  const aliases = new Map(strategy === 'custom' ? Object.entries(naming.aliases) : [])
  // A name given to one entry by hand is nobody else's prefixed name, whether or not that entry is there today.
  const givenAway = new Set(aliases.values())
  const usable = (name: string) => isPlain(name, maxLength)

  return (server, name) => {
    const joined = server + separator + name
    // The first separator is the border, so `a` + `b__c` and `a__b` + `c` can never meet: the second is always hashed.
    const bordered = joined.indexOf(separator) === server.length && usable(joined) && !givenAway.has(joined)
    const prefixed = bordered ? [joined] : []
    const shortened = (text: string) => (attempt: 0 | 1) => hashedName(text, server, name, maxLength, attempt)

    if (ownSources.includes(server) || strategy === 'flat') {
      return usable(name)
        ? { plain: [name, ...prefixed], hashed: shortened(joined) }
        : { plain: [], hashed: shortened(name) }
    }
    const alias = aliases.get(`${server}.${name}`)
    if (alias === undefined) return { plain: prefixed, hashed: shortened(joined) }
    if (!usable(alias)) return { plain: prefixed, hashed: shortened(joined), badAlias: alias }
    return { plain: [alias, ...prefixed.filter((other) => other !== alias)], hashed: shortened(joined) }
  }
}

/**
 * Whether an entry of this server, of which nothing else is known yet, could be served under a name that does not spell
 * out the server: any name with `flat`, an alias with `custom`, or a hashed name.
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

// The hash starts with a digit: eight letters alone would make hashes of `get_document` and `list_projects`.
const hashEnding = /_[2-7][a-z2-7]{7}(?:[a-z2-7]{4})?$/

/** Whether a name may be served as it is; what looks like a hashed name may not, so that the two never meet. */
const isPlain = (name: string, maxLength: number): boolean =>
  name.length > 0 && name.length <= maxLength && /^[A-Za-z0-9_-]+$/.test(name) && !hashEnding.test(name)

function hashedName(text: string, server: string, name: string, maxLength: number, attempt: 0 | 1): string {
  const ending = `_${shortHash(server, name, attempt === 0 ? 8 : 12)}`
  const readable = readableOf(text).slice(0, maxLength - ending.length)
  return readable.replace(/[_-]+$/, '') + ending
}

const readableOf = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, '_')

function shortHash(server: string, name: string, length: number): string {
  // JSON keeps the pair apart whatever characters it has, lone surrogates too.
  const digest = createHash('sha256')
    .update(JSON.stringify([server, name]))
    .digest()
  let text = '234567'[(digest[0] as number) % 6] as string
  for (let at = 1; at < length; at++) text += 'abcdefghijklmnopqrstuvwxyz234567'[(digest[at] as number) & 31]
  return text
}

/** One entry's wish for a name, as its source ranks among the others. */
export interface NameClaim {
  readonly server: string
  readonly name: string
  /** Sources of a lower tier come first: the meta-tools, then the native tools, then servers. */
  readonly tier: number
  /** Within a tier, higher wins. */
  readonly priority: number
  readonly choice: NameChoice
}

/** A name that somebody wanted and did not get. */
export interface NameConflict {
  readonly server: string
  readonly name: string
  readonly wanted: string
  /** Who has it; absent when the wish itself was not a usable name. */
  readonly winner?: { readonly server: string; readonly name: string }
  readonly served: string
}

/**
 * Gives every claim a name of its own, in the order of the claims. Plain names go by tier, priority and order;
 * whoever is left gets its hashed name, which no plain name can be.
 */
export function assignNames(claims: readonly NameClaim[]): {
  names: readonly string[]
  conflicts: readonly NameConflict[]
} {
  const names = new Array<string>(claims.length)
  const holders = new Map<string, NameClaim>()
  const lost = new Map<number, { wanted: string; winner?: NameClaim }>()
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

  for (const index of ranked(claims)) {
    const claim = claims[index] as NameClaim
    if (claim.choice.badAlias !== undefined) lost.set(index, { wanted: claim.choice.badAlias })
    if (!claim.choice.plain.some((name) => take(index, claim, name))) left.push(index)
  }

  // Not by rank: which of two colliding hashes stays short must not depend on the order of the configuration.
  left.sort((a, b) => compareText(claims[a] as NameClaim, claims[b] as NameClaim))
  for (const index of left) {
    const claim = claims[index] as NameClaim
    if (take(index, claim, claim.choice.hashed(0)) || take(index, claim, claim.choice.hashed(1))) continue
    throw new Error(`no name is left for ${claim.server} and ${claim.name}: two long hashes are equal`)
  }

  const conflicts = [...lost].map(([index, { wanted, winner }]) => {
    const { server, name } = claims[index] as NameClaim
    const holder = winner && { winner: { server: winner.server, name: winner.name } }
    return { server, name, wanted, served: names[index] as string, ...holder }
  })
  return { names, conflicts }
}

function ranked(claims: readonly NameClaim[]): number[] {
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

import type { NameChoice } from './names.ts'

/** One entry's wish for a name, as its source ranks among the others. */
export interface Claim {
  readonly server: string
  readonly name: string
  /** Sources of a lower tier come first: the meta-tools, then the native tools, then servers. */
  readonly tier: number
  /** Within a tier, higher wins. */
  readonly priority: number
  readonly choice: NameChoice
}

/** A name that somebody wanted and did not get. */
export interface Conflict {
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
export function assign(claims: readonly Claim[]): { names: readonly string[]; conflicts: readonly Conflict[] } {
  const names = new Array<string>(claims.length)
  const holders = new Map<string, Claim>()
  const lost = new Map<number, { wanted: string; winner?: Claim }>()
  const left: number[] = []

  const take = (index: number, claim: Claim, wanted: string): boolean => {
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
    const claim = claims[index] as Claim
    if (claim.choice.badAlias !== undefined) lost.set(index, { wanted: claim.choice.badAlias })
    if (!claim.choice.plain.some((name) => take(index, claim, name))) left.push(index)
  }

  // Not by rank: which of two colliding hashes stays short must not depend on the order of the configuration.
  left.sort((a, b) => compareText(claims[a] as Claim, claims[b] as Claim))
  for (const index of left) {
    const claim = claims[index] as Claim
    if (take(index, claim, claim.choice.hashed(0)) || take(index, claim, claim.choice.hashed(1))) continue
    throw new Error(`no name is left for ${claim.server} and ${claim.name}: two long hashes are equal`)
  }

  const conflicts = [...lost].map(([index, { wanted, winner }]) => {
    const { server, name } = claims[index] as Claim
    const holder = winner && { winner: { server: winner.server, name: winner.name } }
    return { server, name, wanted, served: names[index] as string, ...holder }
  })
  return { names, conflicts }
}

function ranked(claims: readonly Claim[]): number[] {
  const order = claims.map((_, index) => index)
  return order.sort((a, b) => {
    const first = claims[a] as Claim
    const second = claims[b] as Claim
    return first.tier - second.tier || second.priority - first.priority || a - b
  })
}

function compareText(a: Claim, b: Claim): number {
  if (a.server !== b.server) return a.server < b.server ? -1 : 1
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

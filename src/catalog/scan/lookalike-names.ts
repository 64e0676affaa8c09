import { skeletonOf, spellingOf } from '../../lib/characters.ts'

interface KnownName {
  readonly server: string
  readonly spelling: string
  readonly label: string
  readonly description: string
}

/** Max names kept per skeleton. Further names would add no information. */
const maxOfOne = 16

/**
 * The names of all servers' tools, to find those that look like another server's (B5): `read_fi1e`, a Cyrillic letter in a
 * Latin word, or another server's name as a prefix. Equal names do not, and neither do names that differ only in
 * separators and case, unless the description is a copy of the other one.
 */
export class ToolNames {
  readonly #names = new Map<string, KnownName[]>()
  readonly #qualified = new Map<string, KnownName[]>()
  readonly #offered = new Map<string, ReadonlySet<string>>()

  add(server: string, name: string, description: unknown = ''): void {
    const label = `${server}.${name}`
    const known = { server, label, description: typeof description === 'string' ? description : '' }
    addName(this.#names, skeletonOf(name), { ...known, spelling: spellingOf(name) })
    addName(this.#qualified, skeletonOf(label), { ...known, spelling: spellingOf(label) })
  }

  /** Notes what a server lists, before its names are added one by one. */
  offer(server: string, names: Iterable<string>): void {
    this.#offered.set(server, new Set([...names].map(spellingOf)))
  }

  /** An earlier tool of another server that has a similar name, or the same name and a copied description. */
  resembling(server: string, name: string, description: unknown = ''): string | undefined {
    const skeleton = skeletonOf(name)
    const spelling = spellingOf(name)
    const isOther = (known: KnownName) => known.server !== server
    const isOwn = (known: KnownName) => known.server === server && known.spelling === spelling
    const list = this.#names.get(skeleton) ?? []
    const earlier = list.slice(0, (list.findIndex(isOwn) + 1 || list.length + 1) - 1).filter(isOther)
    const isCopy = (known: KnownName) => isCopied(known.description, description)
    // If it has the same name as the tool that was there first, that is no disguise.
    const similar = earlier[0]?.spelling === spelling ? earlier.find(isCopy) : earlier[0]
    return (similar ?? this.#qualified.get(skeleton)?.find(isOther))?.label
  }

  /** The tool of another server that a word in a definition of this server names. */
  foreign(server: string, word: string): string | undefined {
    const spelling = spellingOf(word)
    if (this.#offered.get(server)?.has(spelling)) return undefined
    const known = this.#names.get(skeletonOf(word))?.filter((other) => other.spelling === spelling) ?? []
    return known.some((own) => own.server === server) ? undefined : known[0]?.label
  }
}

/** Whether two descriptions have nearly the same words. Equal ones are two instances of the same server. */
function isCopied(first: string, second: unknown): boolean {
  if (typeof second !== 'string' || first === second) return false
  const [a, b] = [descriptionWords(first), descriptionWords(second)]
  return a.size >= minWords && a.intersection(b).size >= copiedShare * Math.max(a.size, b.size)
}

const minWords = 4
const copiedShare = 0.8
const descriptionWords = (text: string): Set<string> =>
  new Set(
    text
      .slice(0, 2_000)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu),
  )

function addName(names: Map<string, KnownName[]>, skeleton: string, known: KnownName): void {
  const list = names.get(skeleton)
  if (!list) names.set(skeleton, [known])
  else if (
    list.length < maxOfOne &&
    !list.some(({ server, spelling }) => server === known.server && spelling === known.spelling)
  )
    list.push(known)
}

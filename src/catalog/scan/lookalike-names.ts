import { skeletonOf, spellingOf } from '../../lib/lookalikes.ts'

interface Known {
  readonly server: string
  readonly spelling: string
  readonly label: string
}

/** Max names kept per skeleton. Further names would add no information. */
const maxOfOne = 16

/**
 * The names of all servers' tools, to find those that look like another server's (B5): `read_fi1e`, a Cyrillic letter in a
 * Latin word, or another server's name as a prefix. Equal names do not, and neither do names that differ only in
 * separators and case.
 */
export class ToolNames {
  readonly #names = new Map<string, Known[]>()
  readonly #qualified = new Map<string, Known[]>()

  add(server: string, name: string): void {
    const label = `${server}.${name}`
    add(this.#names, skeletonOf(name), { server, spelling: spellingOf(name), label })
    add(this.#qualified, skeletonOf(label), { server, spelling: spellingOf(label), label })
  }

  /** A tool of another server that has a similar name. */
  resembling(server: string, name: string): string | undefined {
    const skeleton = skeletonOf(name)
    const isOther = (known: Known) => known.server !== server
    const similar = this.#names.get(skeleton)?.find(isOther)
    // If it has the same name as the tool that was there first, that is no disguise.
    if (similar && similar.spelling !== spellingOf(name)) return similar.label
    return this.#qualified.get(skeleton)?.find(isOther)?.label
  }
}

function add(names: Map<string, Known[]>, skeleton: string, known: Known): void {
  const list = names.get(skeleton)
  if (!list) names.set(skeleton, [known])
  else if (
    list.length < maxOfOne &&
    !list.some(({ server, spelling }) => server === known.server && spelling === known.spelling)
  )
    list.push(known)
}

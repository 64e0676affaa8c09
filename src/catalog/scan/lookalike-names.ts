import type { Entry } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import type { Source } from '../../core/source.ts'
import { skeletonOf, spellingOf } from '../../lib/lookalikes.ts'
import { visible } from './escape-invisible.ts'

interface Known {
  readonly server: string
  readonly spelling: string
  readonly label: string
}

type Sources = readonly Pick<Source, 'name' | 'entries'>[]

/**
 * Flags tools whose names look like those of another server's tools (B5): `read_fi1e`, a Cyrillic letter in a Latin
 * word, or another server's name as a prefix. Equal names are not flagged, and neither are names that differ only in
 * separators and case.
 */
export function createLookalikeFlags(sources: Sources, log: Log): (entry: Entry) => readonly string[] {
  let flagged = new WeakSet<Entry>()
  let seen: readonly (readonly Entry[])[] = []
  let looked = false
  const logged = new Set<string>()

  /** Compares the names, at most once per event loop turn, because a listing requests every entry's flags. */
  const look = () => {
    if (looked) return
    looked = true
    setImmediate(() => {
      looked = false
    })
    const lists = sources.map((source) => source.entries())
    if (lists.length === seen.length && lists.every((list, index) => list === seen[index])) return
    seen = lists
    flagged = new WeakSet()
    for (const [entry, others] of alike(lists.flat())) {
      flagged.add(entry)
      tell(entry, others)
    }
  }

  const tell = ({ server, name }: Entry, other: Known) => {
    const tool = visible(`${server}.${name}`)
    if (logged.has(`${tool} ${other.label}`) || logged.size >= maxLogged) return
    logged.add(`${tool} ${other.label}`)
    log.warn({ server, tool, alike: visible(other.label) }, 'tool name looks like the name of a tool on another server')
  }

  return (entry) => {
    if (entry.kind !== 'tool') return []
    look()
    return flagged.has(entry) ? flags : []
  }
}

const flags = ['look-alike']
const maxLogged = 1_000

function* alike(entries: readonly Entry[]): Iterable<readonly [Entry, Known]> {
  const tools = entries.filter(({ kind }) => kind === 'tool')
  const names = new Map<string, Known[]>()
  const qualified = new Map<string, Known[]>()
  for (const { server, name } of tools) {
    const label = `${server}.${name}`
    add(names, skeletonOf(name), { server, spelling: spellingOf(name), label })
    add(qualified, skeletonOf(label), { server, spelling: spellingOf(label), label })
  }
  for (const entry of tools) {
    const [skeleton, spelling] = [skeletonOf(entry.name), spellingOf(entry.name)]
    const other =
      names.get(skeleton)?.find((one) => one.server !== entry.server && one.spelling !== spelling) ??
      qualified.get(skeleton)?.find(({ server }) => server !== entry.server)
    if (other) yield [entry, other]
  }
}

/** Max names kept per skeleton. Further names would add no information. */
const maxOfOne = 16

function add(names: Map<string, Known[]>, skeleton: string, known: Known): void {
  const list = names.get(skeleton)
  if (!list) names.set(skeleton, [known])
  else if (
    list.length < maxOfOne &&
    !list.some(({ server, spelling }) => server === known.server && spelling === known.spelling)
  )
    list.push(known)
}

import type { PolicyRefusal, Ruling } from './verdict.ts'

export interface Memory {
  get(agent: number, entry: number): Ruling | undefined
  set(agent: number, entry: number, ruling: Ruling): void
  forget(): void
}

/** An agent has many entries and few distinct rulings: a list of rulings, and per entry an index into it, or 0. */
interface Page {
  places: Uint16Array
  readonly rulings: (Ruling | undefined)[]
  readonly placeOf: Map<Ruling, number>
}

const smallest = 64
const maxRulings = 2 ** 16

/**
 * Two bytes per pair, for at most `limit` pairs. Cleared when full: entries in use are cached again on the next call,
 * and no eviction order has to be maintained.
 */
export function createMemory(limit: number): Memory {
  let pages: (Page | undefined)[] = []
  let room = 0
  const forget = () => {
    pages = []
    room = 0
  }
  const pageWithRoom = (agent: number, entry: number): Page => {
    const page = pages[agent] ?? { places: new Uint16Array(0), rulings: [undefined], placeOf: new Map() }
    if (entry < page.places.length) return page
    const before = page.places
    page.places = new Uint16Array(Math.max(smallest, 2 ** Math.ceil(Math.log2(entry + 1))))
    page.places.set(before)
    room += page.places.length - before.length
    pages[agent] = page
    return page
  }
  return {
    forget,
    get(agent, entry) {
      const page = pages[agent]
      return page?.rulings[page.places[entry] ?? 0]
    },
    set(agent, entry, ruling) {
      if (room > limit) forget()
      const page = pageWithRoom(agent, entry)
      const place = page.placeOf.get(ruling) ?? page.rulings.length
      if (place === maxRulings) return
      page.rulings[place] = ruling
      page.placeOf.set(ruling, place)
      page.places[entry] = place
    },
  }
}

/** A cached entry: its number, and the global policy for it, which does not depend on the agent. */
interface NumberedEntry {
  /** Undefined if the entry is not cached. */
  readonly number: number | undefined
  readonly refusal: PolicyRefusal | undefined
  readonly anonymousRefusal: PolicyRefusal | undefined
}

type Refuse = (server: string, name: string, isTool: boolean, authenticated: boolean) => PolicyRefusal | undefined

/** Longer names are not cached: URIs come from callers, who must not be able to fill the cache. */
const maxName = 256

/** Numbers entries in order of use, from 0 up to the limit; then starts over and calls `startsAfresh`. */
export function createEntryNumbers(
  limit: number,
  refuse: Refuse,
  startsAfresh: () => void,
): (server: string, name: string, isTool: boolean) => NumberedEntry {
  // Nested maps, so that a look-up does not concatenate strings; the parts have cached hashes.
  let tools = new Map<string, Map<string, NumberedEntry>>()
  let others = new Map<string, Map<string, NumberedEntry>>()
  let next = 0
  const entryOf = (server: string, name: string, isTool: boolean, number: number | undefined) => ({
    number,
    refusal: refuse(server, name, isTool, true),
    anonymousRefusal: refuse(server, name, isTool, false),
  })
  return (server, name, isTool) => {
    if (name.length > maxName) return entryOf(server, name, isTool, undefined)
    const known = (isTool ? tools : others).get(server)?.get(name)
    if (known) return known
    if (next === limit) {
      tools = new Map()
      others = new Map()
      next = 0
      startsAfresh()
    }
    const servers = isTool ? tools : others
    const names = servers.get(server) ?? new Map<string, NumberedEntry>()
    const entry = entryOf(server, name, isTool, next++)
    servers.set(server, names.set(name, entry))
    return entry
  }
}

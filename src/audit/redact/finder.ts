/** A string to search for. It contains only characters up to U+00FF. */
export interface Needle {
  readonly text: string
  /** Set if the characters before or after a match also hold bits of the needle, as in base64. */
  readonly shared?: { readonly before: boolean; readonly after: boolean }
}

/** Called for each match. `needle` is the index of the longest needle that ends there. */
type OnMatch = (start: number, end: number, needle: number) => void

/** Searches text. The reported matches may overlap; together they cover every needle in the text. */
type FindMatches = (text: string, found: OnMatch) => void

/**
 * Aho–Corasick: finds all needles in one pass, so the time does not grow with the number of needles. Transitions are in
 * one open-addressing hash table: a dense table would take megabytes for a hundred secrets, and longer to build. For a
 * fixed set of needles, `dense` makes the search faster.
 */
export function createFinder(needles: readonly Needle[], { dense = false } = {}): FindMatches {
  if (needles.length === 0) return () => {}
  const automaton = build(needles)
  const { size, root, child, fail, reach } = automaton
  if (size === 1) return () => {}
  if (dense) return denseFinder(automaton)

  return (text, found) => {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code > 255) {
        state = 0
        continue
      }
      let next = state === 0 ? (root[code] as number) : child(state, code)
      while (next === 0 && state !== 0) {
        state = fail[state] as number
        next = state === 0 ? (root[code] as number) : child(state, code)
      }
      state = next
      if (reach[state] !== 0) report(automaton, text, index + 1, state, found)
    }
  }
}

type Automaton = ReturnType<typeof build>

function denseFinder(automaton: Automaton): FindMatches {
  const { size, way, parent, order, fail, reach } = automaton
  const used = [...new Set(way.subarray(1, size))]
  const width = used.length + 1
  /** The column of each character. 0 for characters that no needle contains. */
  const columns = new Uint8Array(256)
  for (const [index, code] of used.entries()) columns[code] = index + 1
  /** The children of each state, as linked lists. */
  const firstChild = new Uint16Array(size)
  const sibling = new Uint16Array(size)
  for (const state of order) {
    sibling[state] = firstChild[parent[state] as number] as number
    firstChild[parent[state] as number] = state
  }
  const next = new Uint16Array(size * width)
  const addChildren = (state: number) => {
    for (let child = firstChild[state] as number; child !== 0; child = sibling[child] as number) {
      next[state * width + (columns[way[child] as number] as number)] = child
    }
  }
  addChildren(0)
  for (const state of order) {
    // The fallback state stands for a shorter string, so its row is already complete.
    const behind = (fail[state] as number) * width
    next.copyWithin(state * width, behind, behind + width)
    addChildren(state)
  }
  return (text, found) => {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      state = code > 255 ? 0 : (next[state * width + (columns[code] as number)] as number)
      if (reach[state] !== 0) report(automaton, text, index + 1, state, found)
    }
  }
}

function report({ reach, shares, ids }: Automaton, text: string, end: number, state: number, found: OnMatch): void {
  const start = end - (reach[state] as number)
  const sides = shares[state] as number
  const before = sides & 1 && isBase64(text.charCodeAt(start - 1)) ? 1 : 0
  const after = sides & 2 && isBase64(text.charCodeAt(end)) ? 1 : 0
  found(start - before, end + after, ids[state] as number)
}

/** A table with 1 for each ASCII character that the expression matches. */
export const characterTable = (characters: RegExp): Uint8Array =>
  Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0))

/** The standard and URL-safe base64 alphabets. */
const base64 = characterTable(/[\w+/-]/)
const isBase64 = (code: number): boolean => base64[code] === 1

function build(needles: readonly Needle[]) {
  const maxStates = needles.reduce((sum, { text }) => sum + text.length, 1)
  const table = createTransitions(maxStates)
  const fail = new Int32Array(maxStates)
  /** The length of the longest needle that ends in a state. 0 if none does. */
  const reach = new Int32Array(maxStates)
  const shares = new Uint8Array(maxStates)
  const ids = new Int32Array(maxStates)
  const way = new Uint8Array(maxStates)
  const parent = new Int32Array(maxStates)
  const depth = new Int32Array(maxStates)
  let size = 1

  for (const [id, { text, shared }] of needles.entries()) {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      let next = table.child(state, code)
      if (next === 0) {
        next = size++
        table.add(state, code, next)
        way[next] = code
        parent[next] = state
        depth[next] = index + 1
      }
      state = next
    }
    reach[state] = text.length
    ids[state] = id
    shares[state] = (shares[state] as number) | (shared?.before ? 1 : 0) | (shared?.after ? 2 : 0)
  }

  const root = Int32Array.from({ length: 256 }, (_, code) => table.child(0, code))
  const order = byDepth(depth.subarray(0, size))
  for (const state of order) {
    const code = way[state] as number
    let behind = parent[state] as number
    let target = 0
    while (behind !== 0 && target === 0) {
      behind = fail[behind] as number
      target = table.child(behind, code)
    }
    fail[state] = target
    // Needles that end in the fallback state also end here. Only the longest matters, because it covers the others.
    if (reach[state] === 0) {
      reach[state] = reach[target] as number
      ids[state] = ids[target] as number
    }
    shares[state] = (shares[state] as number) | (shares[target] as number)
  }
  return { size, root, way, parent, order, child: table.child, fail, reach, shares, ids }
}

/** All states except the root, shortest first, because a state's (shorter) fallback must be computed before it. */
function byDepth(depths: Int32Array): number[] {
  const levels: number[][] = []
  for (let state = 1; state < depths.length; state++) {
    const depth = (depths[state] as number) - 1
    levels[depth] ??= []
    levels[depth].push(state)
  }
  return levels.flat()
}

function createTransitions(maxStates: number) {
  const bits = Math.max(4, Math.ceil(Math.log2(maxStates * 2)))
  const shift = 32 - bits
  const mask = 2 ** bits - 1
  const keys = new Int32Array(2 ** bits).fill(-1)
  const targets = new Int32Array(2 ** bits)
  const slotOf = (key: number): number => {
    let slot = Math.imul(key, 0x9e3779b1) >>> shift
    while (keys[slot] !== key && keys[slot] !== -1) slot = (slot + 1) & mask
    return slot
  }
  return {
    /** The next state. 0 means that there is none; this is unambiguous, because no transition leads to the root. */
    child: (state: number, code: number): number => targets[slotOf(state * 256 + code)] as number,
    add: (state: number, code: number, target: number): void => {
      const slot = slotOf(state * 256 + code)
      keys[slot] = state * 256 + code
      targets[slot] = target
    },
  }
}

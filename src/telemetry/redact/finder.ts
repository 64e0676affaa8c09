/** A text to find, in characters up to U+00FF. */
export interface Needle {
  readonly text: string
  /** Whether the characters beside it hold bits of it too, as they do in base64. */
  readonly shared?: { readonly before: boolean; readonly after: boolean }
}

/** Tells of places that together cover every needle in a text; they may overlap. */
export type Find = (text: string, found: (start: number, end: number) => void) => void

/**
 * Finds any number of needles in one pass over the text (Aho and Corasick), so that time does not grow with their
 * number. Transitions live in one open hash table: a dense one would take megabytes for a hundred secrets.
 */
export function createFinder(needles: readonly Needle[]): Find {
  if (needles.length === 0) return () => {}
  const { size, root, child, fail, reach, shares } = build(needles)
  if (size === 1) return () => {}

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
      const length = reach[state] as number
      if (length === 0) continue
      const start = index + 1 - length
      const sides = shares[state] as number
      const before = sides & 1 && isBase64(text.charCodeAt(start - 1)) ? 1 : 0
      const after = sides & 2 && isBase64(text.charCodeAt(index + 1)) ? 1 : 0
      found(start - before, index + 1 + after)
    }
  }
}

/** Either alphabet. */
const base64 = Uint8Array.from({ length: 128 }, (_, code) => (/[\w+/-]/.test(String.fromCharCode(code)) ? 1 : 0))
const isBase64 = (code: number): boolean => base64[code] === 1

function build(needles: readonly Needle[]) {
  const most = needles.reduce((sum, { text }) => sum + text.length, 1)
  const table = createTransitions(most)
  const fail = new Int32Array(most)
  /** How far the longest needle that ends in a state reaches back; 0 where none ends. */
  const reach = new Int32Array(most)
  const shares = new Uint8Array(most)
  const way = new Uint8Array(most)
  const parent = new Int32Array(most)
  const depth = new Int32Array(most)
  let size = 1

  for (const { text, shared } of needles) {
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
    shares[state] = (shares[state] as number) | (shared?.before ? 1 : 0) | (shared?.after ? 2 : 0)
  }

  const root = Int32Array.from({ length: 256 }, (_, code) => table.child(0, code))
  for (const state of byDepth(depth.subarray(0, size))) {
    const code = way[state] as number
    let behind = parent[state] as number
    let target = 0
    while (behind !== 0 && target === 0) {
      behind = fail[behind] as number
      target = table.child(behind, code)
    }
    fail[state] = target
    // Whatever ends in the shorter state ends here too; the longest covers the others.
    reach[state] = Math.max(reach[state] as number, reach[target] as number)
    shares[state] = (shares[state] as number) | (shares[target] as number)
  }
  return { size, root, child: table.child, fail: fail.slice(0, size), reach: reach.slice(0, size), shares }
}

/** All states but the root: what a state falls back to is shorter than it, so it must be known first. */
function* byDepth(depths: Int32Array): Generator<number> {
  const levels: number[][] = []
  for (let state = 1; state < depths.length; state++) {
    const depth = (depths[state] as number) - 1
    const level = levels[depth]
    if (level) level.push(state)
    else levels[depth] = [state]
  }
  for (const level of levels) yield* level
}

function createTransitions(most: number) {
  const bits = Math.max(4, Math.ceil(Math.log2(most * 2)))
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
    /** 0 where there is none: nothing leads back to the root. */
    child: (state: number, code: number): number => targets[slotOf(state * 256 + code)] as number,
    add: (state: number, code: number, target: number): void => {
      const slot = slotOf(state * 256 + code)
      keys[slot] = state * 256 + code
      targets[slot] = target
    },
  }
}

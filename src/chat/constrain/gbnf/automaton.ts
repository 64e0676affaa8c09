import { CannotExpress, type WorkBudget } from '../conversion.ts'
import { type CodePointRange, complement } from './expression.ts'

/** A regular expression. `and` and `not` come from lookaheads and from schemas that are combined. */
export type PatternNode =
  | { readonly kind: 'sign'; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: 'row' | 'choice' | 'and'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly inner: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: 'not' | 'look'; readonly inner: PatternNode; readonly negative?: boolean }
  | { readonly kind: 'start' | 'end' }

/** Matches nothing at all, as opposed to the empty string. */
const nothing: PatternNode = { kind: 'choice', parts: [] }
const emptyText: PatternNode = { kind: 'row', parts: [] }

export const anyCharacters = {
  kind: 'repeat',
  inner: { kind: 'sign', ranges: [[0, 0x10ffff]] },
  min: 0,
  max: Number.POSITIVE_INFINITY,
} as const satisfies PatternNode

const anyText = JSON.stringify(anyCharacters)

const isEmptyLanguage = (node: PatternNode): boolean => node.kind === 'choice' && node.parts.length === 0

function matchesEmpty(node: PatternNode): boolean {
  if (node.kind === 'choice') return node.parts.some(matchesEmpty)
  if ('parts' in node) return node.parts.every(matchesEmpty)
  if (node.kind === 'repeat') return node.min === 0 || matchesEmpty(node.inner)
  return node.kind === 'not' ? !matchesEmpty(node.inner) : node.kind !== 'sign'
}

function sequenceOf(parts: readonly PatternNode[]): PatternNode {
  const flat = parts.flatMap((part) => (part.kind === 'row' ? part.parts : [part]))
  if (flat.some(isEmptyLanguage)) return nothing
  return flat.length === 1 ? (flat[0] as PatternNode) : { kind: 'row', parts: flat }
}

function characterSet(kind: 'choice' | 'and', parts: readonly PatternNode[]): PatternNode {
  const different = new Map<string, PatternNode>()
  for (const part of parts.flatMap((one) => (one.kind === kind ? one.parts : [one])))
    different.set(JSON.stringify(part), part)
  if (kind === 'choice' && different.has(anyText)) return anyCharacters
  if (kind === 'and') different.delete(anyText)
  if (kind === 'and' && different.size === 0) return anyCharacters
  const kept = [...different].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, part]) => part)
  if (kind === 'and' && kept.some(isEmptyLanguage)) return nothing
  return kept.length === 1 ? (kept[0] as PatternNode) : { kind, parts: kept }
}

/** What may follow after this character (Brzozowski's derivative). */
function derive(node: PatternNode, point: number): PatternNode {
  switch (node.kind) {
    case 'sign':
      return hasCodePoint(node.ranges, point) ? emptyText : nothing
    case 'row': {
      const [first, ...rest] = node.parts
      if (!first) return nothing
      const others = sequenceOf(rest)
      const after = sequenceOf([derive(first, point), others])
      return matchesEmpty(first) ? characterSet('choice', [after, derive(others, point)]) : after
    }
    case 'choice':
    case 'and':
      return characterSet(
        node.kind,
        node.parts.map((part) => derive(part, point)),
      )
    case 'repeat': {
      const left = { ...node, min: Math.max(0, node.min - 1), max: node.max - 1 }
      return sequenceOf([derive(node.inner, point), left.max === 0 ? emptyText : left])
    }
    case 'not': {
      const inner = derive(node.inner, point)
      return isEmptyLanguage(inner) ? anyCharacters : { kind: 'not', inner }
    }
    default:
      return nothing
  }
}

/** Whether an anchored pattern matches this text. */
export const matchesPattern = (pattern: PatternNode, text: string): boolean =>
  matchesEmpty([...text].reduce((node, sign) => derive(node, sign.codePointAt(0) as number), pattern))

/** Groups of characters that no sign of the pattern distinguishes. */
function alphabetOf(pattern: PatternNode): readonly (readonly CodePointRange[])[] {
  const signs = new Map<string, readonly CodePointRange[]>()
  const open = [pattern]
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.kind === 'sign') signs.set(JSON.stringify(node.ranges), node.ranges)
    if ('parts' in node) open.push(...node.parts)
    if ('inner' in node) open.push(node.inner)
  }
  const bounds = [...signs.values()].flatMap((ranges) => ranges.flatMap(([from, to]) => [from, to + 1]))
  const starts = [...new Set([0, ...bounds])].filter((point) => point <= 0x10ffff).toSorted((one, other) => one - other)
  const groups = Map.groupBy(
    starts.map((from, index): CodePointRange => [from, (starts[index + 1] ?? 0x110000) - 1]),
    ([from]) => [...signs.values()].map((ranges) => Number(hasCodePoint(ranges, from))).join(''),
  )
  return [...groups.values()]
}

const hasCodePoint = (ranges: readonly CodePointRange[], point: number): boolean =>
  ranges.some(([from, to]) => from <= point && point <= to)

/** Transitions by source and target; numbers are states, 0 is the start and -1 the end. */
type Edges = Map<number, Map<number, PatternNode>>

const maxAutomatonStates = 400

function automatonOf(pattern: PatternNode, budget: WorkBudget, at: string): Edges {
  const alphabet = alphabetOf(pattern)
  const edges: Edges = new Map()
  const states = [pattern]
  const numbers = new Map([[JSON.stringify(pattern), 0]])
  for (const [number, state] of states.entries()) {
    const work = JSON.stringify(state).length
    const ranges = new Map<number, CodePointRange[]>()
    for (const group of alphabet) {
      budget.spend(10 + work / 2, at)
      const next = derive(state, group[0]?.[0] as number)
      if (isEmptyLanguage(next)) continue
      const key = JSON.stringify(next)
      const target = numbers.get(key) ?? states.push(next) - 1
      if (target > maxAutomatonStates) throw new CannotExpress(at, 'pattern', 'is too complex')
      numbers.set(key, target)
      ranges.set(target, [...(ranges.get(target) ?? []), ...group])
    }
    const row = new Map<number, PatternNode>(
      [...ranges].map(([target, list]) => [target, { kind: 'sign', ranges: complement(complement(list)) }]),
    )
    edges.set(number, matchesEmpty(state) ? row.set(-1, emptyText) : row)
  }
  return edges
}

/** Maximum number of transitions in a rewritten pattern. */
const maxSize = 3_000

/** The same language without `and` and `not`; `undefined` if it is empty. */
export function plainPattern(pattern: PatternNode, budget: WorkBudget, at: string): PatternNode | undefined {
  const edges = automatonOf(pattern, budget, at)
  edges.set(-2, new Map([[0, emptyText]]))
  const sources = new Map<number, Set<number>>()
  for (const [from, row] of edges) {
    for (const to of row.keys()) sources.set(to, (sources.get(to) ?? new Set()).add(from))
  }
  // Parts are shared, so the size is counted instead of the nodes.
  const sizes = new Map<PatternNode, number>()
  const sizeOf = (node: PatternNode | undefined): number => (node ? (sizes.get(node) ?? 1) : 0)
  const cost = (state: number) => (sources.get(state)?.size ?? 0) * (edges.get(state)?.size ?? 0)
  const left = new Set([...edges.keys()].filter((state) => state >= 0))
  while (left.size > 0) {
    const state = [...left].reduce((one, other) => (cost(other) < cost(one) ? other : one))
    budget.spend(left.size, at)
    left.delete(state)
    eliminate(state)
  }
  return edges.get(-2)?.get(-1)

  /** Replaces a state by transitions around it. */
  function eliminate(state: number): void {
    const others = edges.get(state) ?? new Map<number, PatternNode>()
    const loop = others.get(state)
    others.delete(state)
    const loops: PatternNode[] = loop ? [{ kind: 'repeat', inner: loop, min: 0, max: Number.POSITIVE_INFINITY }] : []
    for (const from of sources.get(state) ?? []) {
      const row = edges.get(from)
      const first = row?.get(state)
      row?.delete(state)
      if (from === state || !row || !first) continue
      for (const [to, last] of others) {
        const path = sequenceOf([first, ...loops, last])
        const known = row.get(to)
        const whole: PatternNode = known ? { kind: 'choice', parts: [known, path] } : path
        sizes.set(whole, sizeOf(known) + sizeOf(first) + sizeOf(loop) + sizeOf(last))
        if (sizeOf(whole) > maxSize) throw new CannotExpress(at, 'pattern', 'is too complex')
        row.set(to, whole)
        sources.set(to, (sources.get(to) ?? new Set()).add(from))
      }
    }
    for (const to of others.keys()) sources.get(to)?.delete(state)
    edges.delete(state)
  }
}

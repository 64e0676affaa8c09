/** Reads what `node --cpu-prof` has written. */

interface Node {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

export interface CpuProfile {
  readonly nodes: readonly Node[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
  readonly startTime: number
}

/** Microseconds of one function within the window. */
export interface Cost {
  readonly name: string
  readonly self: number
  /** With everything that it called, each moment counted once. */
  readonly inclusive: number
}

/** What each function took between two moments, in microseconds of the machine's monotonic clock; the dearest first. */
export function costsOf(profile: CpuProfile, from: number, to: number): Cost[] {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  )
  const ways = new Map<number, readonly string[]>()
  /** The functions on the way to a node, itself first, each once. */
  const wayTo = (id: number): readonly string[] => {
    const known = ways.get(id)
    if (known) return known
    const parent = parents.get(id)
    const name = names.get(id) as string
    const above = parent === undefined ? [] : wayTo(parent)
    const way = [name, ...above.filter((other) => other !== name)]
    ways.set(id, way)
    return way
  }
  const costs = new Map<string, { self: number; inclusive: number }>()
  const add = (name: string, self: number, inclusive: number) => {
    const cost = costs.get(name) ?? { self: 0, inclusive: 0 }
    cost.self += self
    cost.inclusive += inclusive
    costs.set(name, cost)
  }
  let now = profile.startTime
  for (const [at, id] of profile.samples.entries()) {
    now += profile.timeDeltas[at] as number
    const took = profile.timeDeltas[at + 1] ?? 0
    if (now < from || now > to) continue
    const [name = '', ...above] = wayTo(id)
    add(name, took, took)
    for (const other of above) add(other, 0, took)
  }
  return [...costs].map(([name, cost]) => ({ name, ...cost })).sort((a, b) => b.self - a.self)
}

function nameOf({ functionName, url, lineNumber }: Node['callFrame']): string {
  const file = url.replace(/^file:\/\/.*?\/(src|node_modules)\//, '$1/').replace(/^node_modules\//, '')
  return `${functionName || '(anonymous)'}${file === '' ? '' : ` ${file}:${lineNumber + 1}`}`
}

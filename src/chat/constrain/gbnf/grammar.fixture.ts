/** A GBNF grammar as a model server would read it: written for the tests, and from the notation alone. */
export interface Grammar {
  /** Whether a text is one of the grammar's. */
  matches(text: string): boolean
  /** A text of the grammar, chosen by chance; long repetitions are kept short more often than not. */
  sample(random: () => number): string
}

type Node =
  | { readonly kind: 'literal'; readonly points: readonly number[] }
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly kind: 'row'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly inner: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'rule'; readonly name: string }

export function readGrammar(source: string): Grammar {
  const rules = new Map<string, Node>()
  for (const line of source.split('\n').filter((line) => line.trim() !== '')) {
    const head = /^([A-Za-z0-9-]+) ::= /.exec(line)
    if (!head) throw new Error(`not a rule: ${line}`)
    if (rules.has(head[1] as string)) throw new Error(`twice: ${head[1]}`)
    const reader = { signs: [...line.slice(head[0].length)], at: 0 }
    rules.set(head[1] as string, readChoice(reader))
    if (reader.at < reader.signs.length)
      throw new Error(`unexpected ${reader.signs.slice(reader.at).join('')} in ${line}`)
  }
  const ruleOf = (name: string): Node => {
    const found = rules.get(name)
    if (!found) throw new Error(`no rule ${name}`)
    return found
  }
  for (const node of rules.values()) namesIn(node).forEach(ruleOf)
  return {
    matches(text) {
      const points = [...text].map((sign) => sign.codePointAt(0) as number)
      return ends(ruleOf('root'), points, 0, ruleOf, new Map()).has(points.length)
    },
    sample: (random) =>
      draw(ruleOf('root'), ruleOf, random)
        .map((point) => String.fromCodePoint(point))
        .join(''),
  }
}

const namesIn = (node: Node): string[] => {
  if (node.kind === 'rule') return [node.name]
  if (node.kind === 'row') return node.parts.flatMap(namesIn)
  if (node.kind === 'choice') return node.options.flatMap(namesIn)
  return node.kind === 'repeat' ? namesIn(node.inner) : []
}

interface SourceReader {
  readonly signs: readonly string[]
  at: number
}

function readChoice(reader: SourceReader): Node {
  const options = [readRow(reader)]
  while (reader.signs[reader.at] === '|') {
    reader.at++
    options.push(readRow(reader))
  }
  return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options }
}

function readRow(reader: SourceReader): Node {
  const parts: Node[] = []
  for (;;) {
    while (reader.signs[reader.at] === ' ') reader.at++
    const sign = reader.signs[reader.at]
    if (sign === undefined || sign === '|' || sign === ')') break
    parts.push(readRepeat(reader, readOne(reader, sign)))
  }
  return { kind: 'row', parts }
}

function readOne(reader: SourceReader, sign: string): Node {
  if (/[A-Za-z0-9-]/.test(sign)) {
    let name = ''
    while (/[A-Za-z0-9-]/.test(reader.signs[reader.at] ?? '')) name += reader.signs[reader.at++]
    return { kind: 'rule', name }
  }
  reader.at++
  if (sign === '(') {
    const inner = readChoice(reader)
    if (reader.signs[reader.at++] !== ')') throw new Error('a bracket is not closed')
    return inner
  }
  if (sign === '"') {
    const points: number[] = []
    while (reader.signs[reader.at] !== '"') points.push(readPoint(reader))
    reader.at++
    return { kind: 'literal', points }
  }
  if (sign === '[') return readClass(reader)
  throw new Error(`unexpected ${sign}`)
}

function readClass(reader: SourceReader): Node {
  const negated = reader.signs[reader.at] === '^'
  if (negated) reader.at++
  const ranges: [number, number][] = []
  while (reader.signs[reader.at] !== ']') {
    const from = readPoint(reader)
    let to = from
    if (reader.signs[reader.at] === '-') {
      reader.at++
      to = readPoint(reader)
    }
    ranges.push([from, to])
  }
  reader.at++
  return { kind: 'class', negated, ranges }
}

function readPoint(reader: SourceReader): number {
  const sign = reader.signs[reader.at++]
  if (sign === undefined) throw new Error('a text or a set is not closed')
  if (sign !== '\\') return sign.codePointAt(0) as number
  const letter = reader.signs[reader.at++] as string
  const length = { x: 2, u: 4, U: 8 }[letter]
  if (length === undefined) {
    const known: Readonly<Record<string, string>> = {
      n: '\n',
      r: '\r',
      t: '\t',
      '"': '"',
      '\\': '\\',
      '[': '[',
      ']': ']',
    }
    if (!(letter in known)) throw new Error(`unknown escape \\${letter}`)
    return (known[letter] as string).codePointAt(0) as number
  }
  const digits = reader.signs.slice(reader.at, reader.at + length).join('')
  reader.at += length
  if (!/^[0-9A-F]+$/.test(digits)) throw new Error(`not a number: ${digits}`)
  return Number.parseInt(digits, 16)
}

function readRepeat(reader: SourceReader, inner: Node): Node {
  const rest = reader.signs.slice(reader.at, reader.at + 16).join('')
  const found = /^(?:([?*+])|\{(\d+)(?:(,)(\d*))?\})/.exec(rest)
  if (!found) return inner
  reader.at += found[0].length
  const [, sign, from, comma, to] = found
  if (sign)
    return { kind: 'repeat', inner, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY }
  // Servers refuse more.
  if (Number(to ?? from) > 2000) throw new Error(`too many repetitions: ${rest}`)
  return { kind: 'repeat', inner, min: Number(from), max: comma ? Number(to) : Number(from) }
}

type RuleOf = (name: string) => Node

/** Every place at which a text of this node may end that begins here. */
function ends(
  node: Node,
  points: readonly number[],
  at: number,
  ruleOf: RuleOf,
  known: Map<string, ReadonlySet<number>>,
): ReadonlySet<number> {
  const from = (inner: Node, starts: ReadonlySet<number>): Set<number> =>
    new Set([...starts].flatMap((start) => [...ends(inner, points, start, ruleOf, known)]))
  switch (node.kind) {
    case 'literal':
      return node.points.every((point, index) => points[at + index] === point)
        ? new Set([at + node.points.length])
        : new Set()
    case 'class': {
      const point = points[at]
      const inside = point !== undefined && node.ranges.some(([low, high]) => low <= point && point <= high)
      return point !== undefined && inside !== node.negated ? new Set([at + 1]) : new Set()
    }
    case 'row':
      return node.parts.reduce<ReadonlySet<number>>((starts, part) => from(part, starts), new Set([at]))
    case 'choice':
      return new Set(node.options.flatMap((option) => [...ends(option, points, at, ruleOf, known)]))
    case 'repeat': {
      const found = new Set<number>()
      let reached: ReadonlySet<number> = new Set([at])
      for (let count = 0; reached.size > 0; count++) {
        if (count >= node.min) for (const place of reached) found.add(place)
        if (count === node.max) break
        reached = from(node.inner, reached)
      }
      return found
    }
    case 'rule': {
      const key = `${node.name} ${at}`
      const before = known.get(key)
      if (before) return before
      const found = ends(ruleOf(node.name), points, at, ruleOf, known)
      known.set(key, found)
      return found
    }
  }
}

function draw(node: Node, ruleOf: RuleOf, random: () => number): number[] {
  const pick = (most: number): number => Math.min(most - 1, Math.floor(random() * most))
  switch (node.kind) {
    case 'literal':
      return [...node.points]
    case 'class': {
      if (node.negated) throw new Error('no sample of what is not')
      const [low, high] = node.ranges[pick(node.ranges.length)] as readonly [number, number]
      return [low + pick(high - low + 1)]
    }
    case 'row':
      return node.parts.flatMap((part) => draw(part, ruleOf, random))
    case 'choice':
      return draw(node.options[pick(node.options.length)] as Node, ruleOf, random)
    case 'repeat': {
      const spread = Math.min(node.max - node.min, random() < 0.1 ? 40 : 3)
      const count = random() < 0.05 ? Math.min(node.max, node.min + 200) : node.min + pick(spread + 1)
      return Array.from({ length: count }).flatMap(() => draw(node.inner, ruleOf, random))
    }
    case 'rule':
      return draw(ruleOf(node.name), ruleOf, random)
  }
}

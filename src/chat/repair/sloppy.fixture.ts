import fc from 'fast-check'

/** A JSON value, as often an object or a list as not. */
export const containers = fc.letrec<{ value: unknown; array: unknown[]; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom(
      "it's",
      'a "b" c',
      'C:\\new\\d',
      '\\d+',
      'x, y: z',
      '{"a": 1}',
      '// no',
      '# no',
      'a\nb\t',
      '```',
      '',
    ),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    fc.boolean(),
    fc.constant(null),
    tie('array'),
    tie('object'),
  ),
  array: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(
    fc.oneof(fc.constantFrom('a', 'b_c', 'd-e', '__proto__', 'x y'), fc.string({ maxLength: 6 })),
    tie('value'),
    {
      maxKeys: 4,
      noNullPrototype: true,
    },
  ),
}))

/** How badly a value is written down. */
export interface Sloppiness {
  readonly quote: '"' | "'" | '“'
  readonly bareKeys: boolean
  readonly python: boolean
  readonly trailingCommas: boolean
  readonly comments: boolean
  readonly spread: boolean
  readonly arrows: boolean
  readonly doubledCommas: boolean
}

const flag = fc.boolean()

export const sloppiness: fc.Arbitrary<Sloppiness> = fc.record({
  quote: fc.constantFrom('"', "'", '“'),
  bareKeys: flag,
  python: flag,
  trailingCommas: flag,
  comments: flag,
  spread: flag,
  arrows: flag,
  doubledCommas: flag,
})

/** Writes a value in sloppy JSON. */
export function written(value: unknown, how: Sloppiness, indent = ''): string {
  const deeper = `${indent}  `
  const gap = how.spread ? `\n${deeper}` : ' '
  const comma = how.doubledCommas ? ' ,,' : ','
  const note = how.comments ? (how.spread ? ` // so: "it", it's\n${deeper}` : ' /* {it}, "is" */ ') : ''
  const listed = (open: string, parts: readonly string[], close: string): string => {
    const end = how.trailingCommas && parts.length > 0 ? ',' : ''
    return `${open}${note}${gap}${parts.join(`${comma}${note}${gap}`)}${end}${how.spread ? `\n${indent}` : ''}${close}`
  }
  if (typeof value === 'string') return quoted(value, how.quote)
  if (value === null) return how.python ? 'None' : 'null'
  if (typeof value === 'boolean') return how.python ? (value ? 'True' : 'False') : String(value)
  if (Array.isArray(value))
    return listed(
      '[',
      value.map((item) => written(item, how, deeper)),
      ']',
    )
  if (typeof value !== 'object') return String(value)
  const members = Object.entries(value).map(([key, member]) => {
    const name = how.bareKeys && /^[a-z_][\w-]*$/i.test(key) ? key : quoted(key, how.quote)
    return `${name}${how.arrows ? ' => ' : ': '}${written(member, how, deeper)}`
  })
  return listed('{', members, '}')
}

function quoted(text: string, quote: Sloppiness['quote']): string {
  const inner = JSON.stringify(text).slice(1, -1)
  if (quote === '"') return `"${inner}"`
  if (quote === "'") return `'${inner.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  return `“${inner.replaceAll('“', '\\u201c').replaceAll('”', '\\u201d')}”`
}

/** Whether one value is another that was cut off somewhere. */
export function isPrefix(part: unknown, whole: unknown): boolean {
  if (typeof part === 'string') return typeof whole === 'string' && whole.startsWith(part)
  if (typeof part === 'number') return typeof whole === 'number'
  if (typeof part !== 'object' || part === null) return part === whole
  if (typeof whole !== 'object' || whole === null || Array.isArray(part) !== Array.isArray(whole)) return false
  const names = Object.keys(part)
  return names.every((name, index) => {
    const [one, other] = [(part as never)[name], (whole as never)[name]]
    if (!Object.hasOwn(whole, name)) return false
    return index === names.length - 1 ? isPrefix(one, other) : JSON.stringify(one) === JSON.stringify(other)
  })
}

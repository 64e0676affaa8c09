import * as fc from 'fast-check'
import { anyCharacter } from '../../fixtures/any-character.ts'

/** JSON as people and odd serialisers write it: what a parser would make the same of, written in many ways. */

/** Between two tokens. Line breaks are left out: on the way they may become spaces, as stdio and event streams want. */
const space = fc.constantFrom('', '', '', ' ', '  ', '\t', ' \t ')

const number = fc.oneof(
  fc.integer().map(String),
  fc.constantFrom(
    ...['-0', '1.0', '1.50', '1e400', '-1E+2', '2e-7', '0.1000000000000000055511151231257827'],
    ...['12345678901234567890123456789', '9007199254740993', '-0.0e-0', '1e00'],
  ),
)

const escapes = ['\\n', '\\/', '\\"', '\\\\', '\\u0041', '\\u00e9', '\\ud83d\\ude00', '\\ud800', '\\u0000', '\\u2028']

/** The inside of a string: whatever needs no escape, and escapes, also such as nobody needs. */
const characters = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom(...escapes),
      fc.constantFrom('}', '{', '[', ']', ',', ':', ' ', '\\"uri\\":'),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))

const quoted = characters.map((inner) => `"${inner}"`)

const { value } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '{}', '[]', '""'),
    number,
    quoted,
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
    .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`),
  // A key may occur twice in what is only carried: it is nobody's business here.
  object: fc.array(member(quoted, tie('value')), { maxLength: 4 }).map((members) => `{${members.join(',')}}`),
}))

function member(key: fc.Arbitrary<string>, inner: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(space, key, space, space, inner, space)
    .map(([before, name, left, right, text, after]) => `${before}${name}${left}:${right}${text}${after}`)
}

/** Nested as deeply as an honest server might. */
const deep = fc.integer({ min: 1, max: 200 }).map((depth) => `${'[{"d": '.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`)

const anything = fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: deep })

/** Members of a result that no revision knows. */
const unknownKeys = ['future', 'x-unheard', 'Content', 'result', 'error', 'id', 'method', '__proto__', '\\u0063ontent2']
const unknown = fc.constantFrom(...unknownKeys).chain((key) => member(fc.constant(`"${key}"`), anything))

const named = (name: string, inner: fc.Arbitrary<string>) => member(fc.constant(`"${name}"`), inner)

/** A content block of a kind that nobody has heard of, or of a known kind with more than is known. */
const block = fc
  .tuple(
    named('type', fc.constantFrom('"hologram"', '"text"', '"image"', '"\\u0074ext"', '""')),
    fc.array(member(quoted, anything), { maxLength: 3 }),
  )
  .map(([type, more]) => `{${[type, ...more].join(',')}}`)

const listOf = (items: fc.Arbitrary<string>) => fc.array(items, { maxLength: 3 }).map((all) => `[${all.join(' ,')}]`)

const meta = fc.array(member(quoted, anything), { maxLength: 3 }).map((members) => `{${members.join(',')}}`)

/** What each method's result has beside what nobody knows. */
const known = {
  'tools/call': [
    named('content', listOf(block)),
    named('structuredContent', anything),
    named('isError', fc.constantFrom('true', 'false')),
    named('_meta', meta),
  ],
  'prompts/get': [
    named('messages', listOf(block.map((content) => `{"role": "user","content":${content} }`))),
    named('description', quoted),
    named('_meta', meta),
  ],
  'resources/read': [named('contents', listOf(block)), named('_meta', meta)],
  'completion/complete': [named('completion', anything), named('_meta', meta)],
} satisfies Record<string, fc.Arbitrary<string>[]>

export type Carried = keyof typeof known
const methods = Object.keys(known) as Carried[]

/** The envelope that servers of the stateless era put round their results; some forget it. */
const era = fc.oneof(
  { weight: 1, arbitrary: fc.constant([]) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        named('resultType', fc.constant('"complete"')),
        sometimes(named('ttlMs', fc.constantFrom('0', '1000', '5e3'))),
        sometimes(named('cacheScope', fc.constantFrom('"public"', '"private"'))),
      )
      .map(present),
  },
)

export interface ResultText {
  readonly method: Carried
  /** The members as they stand in the text, with the spaces around them; those of the envelope apart. */
  readonly members: readonly string[]
  readonly envelope: readonly string[]
  /** The same as a server of each era would send it. */
  readonly legacy: string
  readonly modern: string
}

function sometimes(member: fc.Arbitrary<string>): fc.Arbitrary<string | undefined> {
  return fc.option(member, { freq: 3, nil: undefined })
}

function present(members: readonly (string | undefined)[]): string[] {
  return members.filter((member) => member !== undefined)
}

const distinct = (members: readonly string[]) => [...new Map(members.map((one) => [keyOf(one), one])).values()]

/** The key of a member, as a parser reads it. */
export function keyOf(text: string): string {
  const [key = '""'] = /"(?:[^"\\]|\\.)*"/.exec(text) ?? []
  return JSON.parse(key)
}

/** A result of one of the methods, in any order of members. */
export const resultText: fc.Arbitrary<ResultText> = fc.constantFrom(...methods).chain((method) =>
  fc
    .tuple(
      fc.tuple(...known[method].map(sometimes)),
      fc.array(unknown, { maxLength: 3 }),
      era,
      fc.infiniteStream(fc.nat()),
    )
    .map(([some, more, envelope, dice]) => {
      const shuffled = (all: readonly string[]) =>
        all
          .map((one) => [dice.next().value as number, one] as const)
          .sort(([a], [b]) => a - b)
          .map(([, one]) => one)
      const members = shuffled(distinct([...present(some), ...more]))
      const wrapped = mixed(members, envelope, () => dice.next().value as number)
      return { method, members, envelope, legacy: `{${members.join(',')}}`, modern: `{${wrapped.join(',')}}` }
    }),
)

/** An error of a server, with what only it understands. */
export const errorText: fc.Arbitrary<string> = fc
  .tuple(
    named('code', fc.constantFrom('4711', '-32001', '-32603', '-31999')),
    named('message', quoted),
    sometimes(named('data', anything)),
    fc.constantFrom(0, 1),
  )
  .map(([code, message, data, turned]) => {
    const members = present([code, message, data])
    return `{${(turned ? members.reverse() : members).join(',')}}`
  })

// `fc.webPath` enters every character of Unicode into a map, which takes a second.
const segment = fc.string({
  unit: fc.oneof(fc.constantFrom(..."abcxyzABCXYZ0189-._~!$&'()*+,;=:@"), anyCharacter.map(encodeURIComponent)),
})
const path = fc.array(segment).map((segments) => segments.join('/'))

/** A tool's result round a URI: one that a client is to follow, as a link or inside a resource. */
export const linkingText: fc.Arbitrary<{ before: string; uri: string; after: string }> = fc
  .tuple(
    fc.constantFrom('{"type" : "resource_link",', '{"type":"resource","resource" :{'),
    fc.array(
      member(
        quoted.map((key) => `${key.slice(0, -1)}!"`),
        anything,
      ),
      { maxLength: 2 },
    ),
    path,
    space,
  )
  .map(([head, more, uri, gap]) => ({
    before: `{"content":[${gap}${head}${[...distinct(more), '"uri":'].join(',')}${gap}`,
    uri,
    after: `${gap}${head.includes('resource_link') ? '' : '}'}}],"structuredContent":{"uri":"demo://stays"}}`,
  }))

/** The second list's items somewhere in the first, whose order stays. */
function mixed(first: readonly string[], second: readonly string[], dice: () => number): string[] {
  const all = [...first]
  for (const one of second) all.splice(dice() % (all.length + 1), 0, one)
  return all
}

/** The members of the object that a text is, each with the spaces around it. */
export function membersOf(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let inString = false
  let from = 1
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at++
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if (character === ',' && depth === 1) {
      found.push(text.slice(from, at))
      from = at + 1
    }
  }
  const last = text.slice(from, text.lastIndexOf('}'))
  return last.trim() === '' && found.length === 0 ? [] : [...found, last]
}

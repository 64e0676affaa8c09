import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { assignNames, createNamer, type NameClaim } from './names.ts'
import { namingOf } from './source.fixture.ts'

interface Named {
  readonly server: string
  readonly name: string
  readonly priority?: number
}

const tiers = ['toolway', 'native']

function namesOf(entries: readonly Named[], naming = namingOf()) {
  const namer = createNamer(naming)
  const claims = entries.map(({ server, name, priority = 0 }): NameClaim => {
    const own = tiers.indexOf(server)
    return { server, name, tier: own < 0 ? 2 : own, priority, choice: namer(server, name) }
  })
  return assignNames(claims)
}

const only = (server: string, name: string, naming = namingOf()) =>
  namesOf([{ server, name }], naming).names[0] as string

/** Names as servers really choose them, and as they might. */
const anyName = fc.oneof(
  fc.constantFrom('a', 'b', 'a__b', 'b__c', '_b', 'a_', '__', '', '__proto__', 'constructor', 'toString', 'c', 'hash'),
  fc.constantFrom(
    'read_file',
    'x_2abcdefg',
    'x_2abcdefghijk',
    'get_document',
    'Ärger',
    '名前',
    'a b',
    'a.b',
    'a/b',
    '😀',
  ),
  fc.string({ unit: fc.constantFrom('a', 'b', '_', '-', '.'), maxLength: 6 }),
  fc.string({ maxLength: 100 }),
  fc.string({ unit: anyCharacter, maxLength: 5 }),
)
const anyServer = fc.oneof(anyName, fc.constantFrom('native', 'toolway'))
const anyEntries = fc.uniqueArray(
  fc.record({ server: anyServer, name: anyName, priority: fc.integer({ min: 0, max: 2 }) }),
  {
    selector: ({ server, name }) => JSON.stringify([server, name]),
    maxLength: 40,
  },
)
const anyNaming = fc.record({
  strategy: fc.constantFrom('prefix' as const, 'flat' as const, 'custom' as const),
  separator: fc.constantFrom('__', '_', '-', '.', '::', 'x'),
  aliases: fc.dictionary(
    fc.constantFrom('a.b', 'a.b__c', 'b.a', 'native.hash'),
    fc.constantFrom('cat', 'a__b', 'x y', 'hash', ''),
  ),
  maxLength: fc.integer({ min: 16, max: 64 }),
})

test('B1: an ordinary name is server, separator and tool', () => {
  expect(only('filesystem', 'read_text_file')).toBe('filesystem__read_text_file')
  expect(only('everything', 'get-env', namingOf({ separator: '-' }))).toBe('everything-get-env')
  expect(only('files', 'get_document')).toBe('files__get_document')
  expect(only('files', '__proto__')).toBe('files____proto__')
})

test.each(['::', '.'])(
  'F3: with the separator %s, names contain it; what would not be unique gets a hash without it',
  (separator) => {
    const naming = namingOf({ separator })
    expect(only('filesystem', 'read_file', naming)).toBe(`filesystem${separator}read_file`)
    for (const [server, name] of [
      ['math', 'math.add'],
      ['a', 'b::c'],
      ['a:', 'b'],
      ['files', 'x'.repeat(60)],
    ] as const) {
      expect(only(server, name, naming)).toMatch(/^[A-Za-z0-9_-]{1,64}_[2-7][a-z2-7]{7}$/)
    }
  },
)

test('B1: a long or unusual name is shortened with a hash, the same way every time', () => {
  const long = only('filesystem', `read_${'very_'.repeat(20)}long`)
  expect(long).toHaveLength(64)
  expect(long).toMatch(/^filesystem__read_very_.*_[2-7][a-z2-7]{7}$/)
  expect(only('math', 'math.factorial')).toBe(only('math', 'math.factorial'))
  expect(only('math', 'math.factorial')).toMatch(/^math__math_factorial_[2-7][a-z2-7]{7}$/)
  expect(only('math', 'math.factorial')).not.toBe(only('math', 'math/factorial'))
})

test('B1: the names of hashed and of plain entries cannot meet', () => {
  const hashed = only('s', 'odd name')
  expect(only('s', hashed.slice('s__'.length))).not.toBe(hashed)
})

test('B1: `a` + `b__c` and `a__b` + `c` keep distinct names, alone or together', () => {
  const entries = [
    { server: 'a', name: 'b__c' },
    { server: 'a__b', name: 'c' },
  ]
  const together = namesOf(entries).names
  expect(together).toEqual(entries.map(({ server, name }) => only(server, name)))
  expect(together[0]).toBe('a__b__c')
  expect(together[1]).toMatch(/^a__b__c_[2-7]/)
})

test('B1: underscores at the border of server and tool do not confuse them', () => {
  expect(only('a', '_b')).toBe('a___b')
  expect(only('a_', 'b')).toMatch(/^a___b_[2-7]/)
})

test('B1: a true collision of hashes lengthens the later one in the order of names, and is a conflict', () => {
  // Found by search: both hash to 7fwojvwl.
  const pair = [
    { server: 's', name: 'ιββδθ' },
    { server: 's', name: 'γπκεζ' },
  ]
  expect(pair.map(({ server, name }) => only(server, name))).toEqual(['s_7fwojvwl', 's_7fwojvwl'])
  const { names, conflicts } = namesOf(pair)
  expect(names).toEqual(['s_7fwojvwls4lw', 's_7fwojvwl'])
  expect(conflicts).toEqual([
    {
      server: 's',
      name: 'ιββδθ',
      wanted: 's_7fwojvwl',
      served: 's_7fwojvwls4lw',
      winner: { server: 's', name: 'γπκεζ' },
    },
  ])
})

test('B1: with a separator that no vendor allows, names keep the alphabet', () => {
  expect(only('a', 'b', namingOf({ separator: '/' }))).toMatch(/^a_b_[2-7][a-z2-7]{7}$/)
})

test('F2: flat serves the tool’s own name; priority, then order, decides a conflict and the loser is prefixed', () => {
  const { names, conflicts } = namesOf(
    [
      { server: 'low', name: 'read' },
      { server: 'high', name: 'read', priority: 5 },
      { server: 'later', name: 'read', priority: 5 },
      { server: 'low', name: 'only mine' },
    ],
    namingOf({ strategy: 'flat' }),
  )
  expect(names.slice(0, 3)).toEqual(['low__read', 'read', 'later__read'])
  expect(names[3]).toMatch(/^only_mine_[2-7]/)
  expect(conflicts.map(({ server, winner }) => [server, winner?.server])).toEqual([
    ['later', 'high'],
    ['low', 'high'],
  ])
})

test('F2: our own tools keep their plain names under every strategy, the meta-tools before the native ones', () => {
  const entries = [
    { server: 'files', name: 'hash', priority: 1_000 },
    { server: 'native', name: 'hash' },
    { server: 'native', name: 'list_servers' },
    { server: 'toolway', name: 'list_servers' },
  ]
  const own = ['hash', 'native__list_servers', 'list_servers']
  expect(namesOf(entries).names).toEqual(['files__hash', ...own])
  const aliases = { 'files.hash': 'list_servers', 'native.hash': 'other' }
  for (const naming of [namingOf({ strategy: 'flat' }), namingOf({ strategy: 'custom', aliases })]) {
    const { names, conflicts } = namesOf(entries, naming)
    expect(names).toEqual(['files__hash', ...own])
    expect(conflicts).toHaveLength(2)
  }
})

test('F2: custom uses the alias; the rest is named as with prefix', () => {
  const aliases = { 'files.read_text_file': 'cat', 'nobody.nothing': 'dog' }
  const entries = ['read_text_file', 'write_file'].map((name) => ({ server: 'files', name }))
  const { names, conflicts } = namesOf(entries, namingOf({ strategy: 'custom', aliases }))
  expect(names).toEqual(['cat', 'files__write_file'])
  expect(conflicts).toEqual([])
})

test('F2: an alias that is invalid, or that an entry of higher priority has, is reported and not used', () => {
  const aliases = { 'a.x': 'not a name', 'a.y': 'cat', 'b.y': 'cat' }
  const { names, conflicts } = namesOf(
    [
      { server: 'a', name: 'x' },
      { server: 'a', name: 'y' },
      { server: 'b', name: 'y', priority: 1 },
    ],
    namingOf({ strategy: 'custom', aliases }),
  )
  expect(names).toEqual(['a__x', 'a__y', 'cat'])
  expect(conflicts.map(({ wanted, winner }) => [wanted, winner?.server])).toEqual([
    ['not a name', undefined],
    ['cat', 'b'],
  ])
})

test('F2: a name that is configured as an alias is never used as a prefixed name', () => {
  const naming = namingOf({ strategy: 'custom', aliases: { 'x.y': 'a__b' } })
  expect(only('a', 'b', naming)).toMatch(/^a__b_[2-7]/)
  expect(only('x', 'y', naming)).toBe('a__b')
})

test('F2: an entry that loses its usual name to the alias of another one is a conflict', () => {
  const naming = namingOf({ strategy: 'custom', aliases: { 'three.y.z': 'two__y', 'two.z': 'cat', 'one.a': 'two__z' } })
  const entries = ['y', 'z'].map((name) => ({ server: 'two', name }))
  const { names, conflicts } = namesOf(entries, naming)
  expect(names).toEqual([expect.stringMatching(/^two__y_[2-7]/), 'cat'])
  const winner = { server: 'three', name: 'y.z' }
  expect(conflicts).toEqual([{ server: 'two', name: 'y', wanted: 'two__y', served: names[0], winner }])
})

test('B1, F2: every name is unique, of the allowed characters and length, whatever the entries', () => {
  fc.assert(
    fc.property(anyEntries, anyNaming, (entries, naming) => {
      const { names } = namesOf(entries, naming)
      expect(new Set(names).size).toBe(entries.length)
      for (const name of names) expect(name.replace(/::|\./, '__')).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      for (const name of names) expect(name.length).toBeLessThanOrEqual(naming.maxLength)
    }),
    runs(100, 5_000),
  )
})

test('B1: with prefix, and with custom aliases that are distinct, a name does not depend on the other servers', () => {
  const servers = anyEntries.map((entries) => entries.filter(({ server }) => !tiers.includes(server)))
  const naming = fc.oneof(
    fc.constant(namingOf()),
    fc.constant(namingOf({ strategy: 'custom', aliases: { 'a.b': 'cat', 'b.a': 'a__c', 'a_._': 'dog' } })),
  )
  fc.assert(
    fc.property(servers, naming, (entries, chosen) => {
      const { names } = namesOf(entries, chosen)
      expect(names).toEqual(entries.map(({ server, name }) => only(server, name, chosen)))
    }),
    runs(100, 5_000),
  )
})

test('F2: an entry that does not get the name it wants is reported', () => {
  fc.assert(
    fc.property(anyEntries, (entries) => {
      const { names, conflicts } = namesOf(entries, namingOf({ strategy: 'flat' }))
      const losers = new Set(conflicts.map(({ server, name }) => JSON.stringify([server, name])))
      entries.forEach(({ server, name }, index) => {
        const contested = entries.some((other, at) => at !== index && other.name === name && names[at] === name)
        if (contested) expect(losers.has(JSON.stringify([server, name]))).toBe(true)
      })
    }),
  )
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ServerConfig } from '../../config/schema.ts'
import {
  type Approval,
  type DefinitionSnapshot,
  keyOf,
  mergeRecords,
  originOf,
  type Pin,
  parseRecord,
  recordText,
  type ServerPins,
} from './pin-record.ts'

const hashes = fc.constantFrom(...'abcdef').map((letter) => letter.repeat(64))
const sights: fc.Arbitrary<DefinitionSnapshot> = fc.record({
  hash: hashes,
  at: fc.integer({ min: 1, max: 50 }),
  flags: fc.constant([]),
  high: fc.constant(false),
  scanner: fc.integer({ min: 0, max: 2 }),
})
const approvals: fc.Arbitrary<Approval> = fc
  .tuple(sights, fc.constantFrom('first sight' as const, 'operator' as const))
  .map(([sight, by]) => ({ ...sight, by }))

const pins = (name: string): fc.Arbitrary<Pin> =>
  fc
    .record({
      approved: fc.uniqueArray(approvals, { selector: ({ hash }) => hash, maxLength: 2 }),
      pending: fc.uniqueArray(sights, { selector: ({ hash }) => hash, maxLength: 1 }),
      seen: fc.record({ hash: hashes, at: fc.integer({ min: 1, max: 50 }) }),
    })
    .map(({ approved, pending, seen }) => ({
      kind: 'tool',
      name,
      approved: approved.filter(({ by }, index) => by === 'operator' || index === 0),
      pending: pending.filter(({ hash }) => approved.every((approval) => approval.hash !== hash)),
      seen,
    }))

const records: fc.Arbitrary<ServerPins> = fc
  .record({
    acknowledged: fc.integer({ min: 0, max: 9 }),
    distrusted: fc.integer({ min: 0, max: 9 }),
    listed: fc.boolean(),
    pins: fc.subarray(['read', 'write', 'find']).chain((names) => fc.tuple(...names.map(pins))),
  })
  .map(({ pins, ...rest }) => ({
    server: 'files',
    origins: [],
    ...rest,
    pins: new Map(pins.map((pin) => [keyOf(pin.kind, pin.name), pin])),
  }))

const plain = (record: ServerPins) => ({
  ...record,
  pins: Object.fromEntries([...record.pins].sort(([a], [b]) => (a < b ? -1 : 1))),
})

/** Which of several first sights is kept, and what is known of it, may depend on the order; a person's word must not. */
const byOperators = ({ pins }: ServerPins) =>
  [...pins]
    .flatMap(([key, { approved }]) =>
      approved.filter(({ by }) => by === 'operator').map(({ hash }) => `${key} ${hash}`),
    )
    .sort()

test('B5: of two writers neither loses a pin, an approval by an operator or a change that waits', () => {
  fc.assert(
    fc.property(records, records, (a, b) => {
      const merged = mergeRecords(a, b)
      for (const side of [a, b]) {
        for (const [key, pin] of side.pins) {
          const now = merged.pins.get(key)
          const approved = now?.approved.map(({ hash }) => hash)
          const known = [...(approved ?? []), ...(now?.pending.map(({ hash }) => hash) ?? [])]
          for (const { hash, by } of pin.approved) {
            if (by === 'operator') expect(approved).toContain(hash)
            expect(known).toContain(hash)
          }
          for (const { hash } of pin.pending) expect(known).toContain(hash)
        }
      }
    }),
  )
})

test('B5: approvals of operators do not depend on the order or number of merges', () => {
  fc.assert(
    fc.property(records, records, records, (a, b, c) => {
      const ab = mergeRecords(a, b)
      expect(plain(mergeRecords(b, a))).toEqual(plain(ab))
      expect(byOperators(mergeRecords(ab, b))).toEqual(byOperators(ab))
      expect(byOperators(mergeRecords(ab, c))).toEqual(byOperators(mergeRecords(a, mergeRecords(b, c))))
    }),
  )
})

test('B5: a merge never approves what neither side had approved, and there is one first sight', () => {
  fc.assert(
    fc.property(records, records, (a, b) => {
      for (const [key, { approved }] of mergeRecords(a, b).pins) {
        const before = [...(a.pins.get(key)?.approved ?? []), ...(b.pins.get(key)?.approved ?? [])]
        for (const { hash, by } of approved) expect(before.some((one) => one.hash === hash && one.by === by)).toBe(true)
        expect(approved.filter(({ by }) => by === 'first sight').length).toBeLessThan(2)
      }
    }),
  )
})

test('B5: a written record is read back', () => {
  fc.assert(
    fc.property(records, (record) => {
      expect(plain(parseRecord(recordText(record)) as ServerPins)).toMatchObject(plain(record))
    }),
  )
})

test('B6: a secret in the path of a URL is neither described nor kept, and two of them still differ', () => {
  const at = (url: string) => originOf({ transport: 'http', url } as ServerConfig)
  const [one, other] = ['Zk3vQ9xLm2Rt7Wp5', 'Yb8Nc4Hd6Jf1Gs0K'].map((secret) => at(`https://x.test:8/s/${secret}/mcp`))
  expect(one?.text).toBe('https://x.test:8/s/[redacted]/mcp')
  expect(other?.hash).not.toBe(one?.hash)
  expect(at('https://a1b2c3d4e5f6g7.example.com/api-v2/mcp').text).toBe('https://a1b2c3d4e5f6g7.example.com/api-v2/mcp')
})

test('B6: a secret in the path of a URL that Toolway 0.1 stored is redacted when it is read', () => {
  const origin = { hash: '0123456789abcdef', text: 'https://x.test/Zk3vQ9xLm2Rt7Wp5/mcp', at: 1 }
  const stored = { version: 1, server: 'web', origins: [origin], acknowledged: 0, distrusted: 0, pins: [] }
  const { origins } = parseRecord(JSON.stringify(stored)) as ServerPins
  expect(origins).toEqual([{ ...origin, text: 'https://x.test/[redacted]/mcp' }])
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createEntryNumbers, createMemory } from './rules.ts'
import { permission } from './verdict.ts'

const rulings = ['a', 'b', 'c'].map(permission)

test('returns the last decision that was set, or nothing', () => {
  const sets = fc.array(fc.tuple(fc.nat(3), fc.nat(300), fc.constantFrom(...rulings)), { maxLength: 200 })
  fc.assert(
    fc.property(sets, fc.integer({ min: 1, max: 2_000 }), (all, limit) => {
      const memory = createMemory(limit)
      const last = new Map<string, unknown>()
      for (const [agent, entry, ruling] of all) {
        memory.set(agent, entry, ruling)
        last.set(`${agent} ${entry}`, ruling)
        expect(memory.get(agent, entry)).toBe(ruling)
      }
      for (const [pair, ruling] of last) {
        const [agent, entry] = pair.split(' ').map(Number)
        expect([undefined, ruling]).toContain(memory.get(agent!, entry!))
      }
      memory.forget()
      for (const [agent, entry] of all) expect(memory.get(agent, entry)).toBeUndefined()
    }),
  )
})

test('a full cache is cleared', () => {
  const memory = createMemory(100)
  memory.set(0, 5, rulings[0]!)
  memory.set(1, 5, rulings[1]!)
  expect(memory.get(0, 5)).toBe(rulings[0])
  memory.set(2, 5, rulings[2]!)
  expect([memory.get(0, 5), memory.get(1, 5), memory.get(2, 5)]).toEqual([undefined, undefined, rulings[2]])
})

test('entries keep their number, tools and others apart, until there are too many', () => {
  let restarts = 0
  const asked: string[] = []
  const numberOf = createEntryNumbers(
    3,
    (server, name, isTool, authenticated) => {
      asked.push([server, name, isTool, authenticated].join(' '))
      return undefined
    },
    () => restarts++,
  )
  expect(numberOf('a', 'x', true).number).toBe(0)
  expect(numberOf('a', 'x', false).number).toBe(1)
  expect(numberOf('b', 'x', true).number).toBe(2)
  expect(numberOf('a', 'x', true).number).toBe(0)
  expect([restarts, asked.length]).toEqual([0, 6])
  expect(numberOf('b', 'y', true).number).toBe(0)
  expect(restarts).toBe(1)
  expect(numberOf('a', 'x', true).number).toBe(1)
  expect(asked).toContain('a x false false')
})

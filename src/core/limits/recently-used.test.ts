import { expect, test } from 'vitest'
import { Budget } from './budget.ts'
import { RecentlyUsed } from './recently-used.ts'

const open = (limit: number, perCaller: number) => {
  const budget = new Budget('bytes', { what: 'bytes', limit, perCaller })
  const evicted: string[] = []
  const items = new RecentlyUsed<{ owner: string | undefined; name: string; size: number }>(
    [{ budget, of: ({ size }) => size }],
    ({ name }) => evicted.push(name),
  )
  const add = (name: string, owner?: string, size = 1) => {
    const item = { name, owner, size }
    items.add(item)
    return item
  }
  return { budget, items, add, evicted }
}

test("V6: RecentlyUsed evicts an owner's least recently used items before others", () => {
  const { budget, items, add, evicted } = open(4, 2)
  add('other', 'bert')
  const first = add('a1', 'anna')
  add('a2', 'anna')
  items.touch(first)
  add('a3', 'anna')
  expect(evicted).toEqual(['a2'])
  expect(budget.use()).toMatchObject({ used: 3, largest: 2, refused: 1 })
})

test('V6: RecentlyUsed evicts the oldest of all beyond the limit, and skips items that use nothing of it', () => {
  const { budget, items, add, evicted } = open(2, 2)
  const free = add('free', 'anna', 0)
  for (const name of ['a', 'b', 'c']) add(name)
  expect(evicted).toEqual(['a'])
  expect(items.oldest).toBe(free)
  budget.resize(1, 1)
  add('d')
  expect(evicted).toEqual(['a', 'b', 'c'])
  items.delete(free)
  expect([items.oldest?.name, budget.used]).toEqual(['d', 1])
})

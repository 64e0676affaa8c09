import { expect, test } from 'vitest'
import { acquireLease, createLeases, type Membership } from './cluster.ts'

/** A minimal registry of replicas in memory. `join` returns the membership of a replica. */
function registry() {
  const held = new Map<string, { holder: string; record: string }>()
  const living = new Set<string>()
  const listeners = new Set<() => void>()
  const join = (self: string): Membership => {
    living.add(self)
    return {
      self,
      onReturn(listener) {
        listeners.add(listener)
        return { [Symbol.dispose]: () => void listeners.delete(listener) }
      },
      async keep(name, record) {
        const holder = held.get(name)?.holder
        if (holder !== undefined && holder !== self && living.has(holder)) return false
        held.set(name, { holder: self, record })
        return true
      },
      async takeOver(name, unreachable) {
        const found = held.get(name)
        if (!found) return undefined
        const { holder, record } = found
        if (holder !== self && holder !== unreachable && living.has(holder)) return { heldBy: holder, address: holder }
        held.set(name, { holder: self, record })
        return { record }
      },
    } as Membership
  }
  /**
   * Drops all leases, as if the store had lost its data. The returned function tells the replicas that the store is
   * back.
   */
  const forget = () => {
    held.clear()
    return async () => {
      for (const listener of listeners) listener()
      await new Promise(setImmediate)
    }
  }
  return { join, forget, leave: (name: string) => void living.delete(name) }
}

const ours = { ours: true, lost: false }

test('B10: a lease has one holder, until that one is gone', async () => {
  const { join, leave } = registry()
  const [a, b] = [join('a'), join('b')]
  expect(await acquireLease(a, 'x')).toEqual(ours)
  expect(await acquireLease(b, 'x')).toEqual({ heldBy: 'a', address: 'a' })
  expect(await acquireLease(a, 'x')).toEqual(ours)
  leave('a')
  // `acquireLease` alone does not clear `lost`: the leases below report it again, once.
  expect(await acquireLease(b, 'x')).toEqual({ ours: true, lost: true })
  using claims = createLeases(b)
  expect(await claims.acquire('x')).toEqual({ ours: true, lost: true })
  expect(await claims.acquire('x')).toEqual(ours)
})

test('B10: after the registry lost its data, holders get their leases back unless another replica was faster', async () => {
  const { join, forget } = registry()
  const [a, b] = [join('a'), join('b')]
  using claims = createLeases(a)
  await claims.acquire('x')
  await claims.acquire('y')
  const returned = forget()
  expect(await acquireLease(b, 'y')).toEqual(ours)
  await returned()
  expect(await acquireLease(b, 'x')).toEqual({ heldBy: 'a', address: 'a' })
  expect(await claims.acquire('y')).toEqual({ heldBy: 'b', address: 'b' })
})

test('B10: if several replicas acquire a lease at once, one gets it, and the others learn which', async () => {
  const { join } = registry()
  const fleets = ['a', 'b', 'c'].map(join)
  const found = await Promise.all(fleets.map((membership) => acquireLease(membership, 'x')))
  expect(found.filter((one) => 'ours' in one)).toHaveLength(1)
  expect(new Set(found.flatMap((one) => ('heldBy' in one ? one.heldBy : []))).size).toBe(1)
})

test('B10: another replica takes over the lease of an unreachable one; without a registry each replica works alone', async () => {
  const { join } = registry()
  const [a, b] = [join('a'), join('b')]
  await acquireLease(a, 'x')
  expect(await acquireLease(b, 'x', 'a')).toEqual({ ours: true, lost: true })
  const alone = { self: 'c', keep: async () => true, takeOver: async () => undefined } as unknown as Membership
  expect(await acquireLease(alone, 'x')).toEqual(ours)
})

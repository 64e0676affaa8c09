import { describe, expect, test } from 'vitest'
import type { Locks } from '../../src/core/stores.ts'

/** What all locks must do. `create` gives two sets that know the same locks, as two processes have them. */
export function locksContract(name: string, create: () => Promise<readonly [Locks, Locks]>): void {
  describe(`B10: locks in ${name}`, () => {
    test('one at a time holds one, within a process and across them', async () => {
      const sets = await create()
      let inside = 0
      const seen: number[] = []
      const work = async (index: number) => {
        await using _ = await (sets[index % 2] as Locks).hold('grant')
        seen.push(++inside)
        await new Promise(setImmediate)
        inside--
      }
      await Promise.all(Array.from({ length: 12 }, (_, index) => work(index)))
      expect(seen).toEqual(Array(12).fill(1))
    })

    test('other names do not wait', async () => {
      const [one, other] = await create()
      await using _first = await one.hold('one')
      await using _second = await other.hold('two')
      await using _third = await one.hold('three')
    })

    test('it is free again when its holder has failed', async () => {
      const [one, other] = await create()
      const failing = async () => {
        await using _ = await one.hold('grant')
        throw new Error('no')
      }
      await expect(failing()).rejects.toThrow('no')
      await using _ = await other.hold('grant')
    })
  })
}

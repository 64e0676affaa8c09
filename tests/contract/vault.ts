import { describe, expect, test } from 'vitest'
import type { Vault } from '../../src/core/stores.ts'

export interface VaultUnderTest {
  readonly vault: Vault
  /** The same place opened anew, with the same key or with another one. */
  again(key?: 'another'): Vault
  /** Whatever lies in the place, by name. */
  records(): Promise<ReadonlyMap<string, string>>
  /** Puts something there, past the vault. */
  plant(name: string, record: string): Promise<void>
}

/** What every vault must do. `create` gives an empty one. */
export function vaultContract(name: string, create: () => Promise<VaultUnderTest>): void {
  describe(`B6: a vault in ${name}`, () => {
    test('stored values can be read, also by another instance, and removed', async () => {
      const { vault, again } = await create()
      expect(await vault.keys()).toEqual([])
      await vault.write('b', 'second')
      await vault.write('a', 'first')
      await again().write('a', 'third')
      expect(await vault.keys()).toEqual(['a', 'b'])
      expect(await vault.read('a')).toBe('third')
      await again().remove('a')
      await vault.remove('never there')
      expect(await vault.read('a')).toBeUndefined()
      expect(await vault.keys()).toEqual(['b'])
    })

    test('the stored records reveal neither values nor keys', async () => {
      const { vault, records } = await create()
      await vault.write('server one', 'a refresh token')
      const all = [...(await records())]
      expect(all).toHaveLength(1)
      expect(JSON.stringify(all)).not.toMatch(/token|server/)
      expect(Buffer.from(all[0]?.[1] ?? '', 'base64url').toString('latin1')).not.toMatch(/token|server/)
    })

    test('a record that is copied over another does not open', async () => {
      const { vault, records, plant } = await create()
      await vault.write('one', 'of one')
      await vault.write('two', 'of two')
      const [first, second] = [...(await records())]
      await plant(first?.[0] ?? '', second?.[1] ?? '')
      expect(await vault.keys()).toHaveLength(1)
      expect([await vault.read('one'), await vault.read('two')].filter(Boolean)).toHaveLength(1)
    })

    test('another key opens nothing', async () => {
      const { vault, again } = await create()
      await vault.write('one', 'of one')
      const other = again('another')
      expect(await other.read('one')).toBeUndefined()
      expect(await other.keys()).toEqual([])
    })

    test('a damaged record counts as missing and can be written again', async () => {
      const { vault, records, plant } = await create()
      await vault.write('one', 'of one')
      const [[at, record] = ['', '']] = [...(await records())]
      const changed = record.startsWith('A') ? 'B' : 'A'
      for (const garbage of ['', 'garbage', record.slice(0, -4), changed + record.slice(1), 'A'.repeat(300_000)]) {
        await plant(at, garbage)
        expect(await vault.read('one')).toBeUndefined()
        expect(await vault.keys()).toEqual([])
      }
      await vault.write('one', 'of one')
      expect(await vault.read('one')).toBe('of one')
    })
  })
}

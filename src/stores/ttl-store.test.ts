import { expect, test } from 'vitest'
import { ttlStoreContract } from '../../tests/contract/ttl-store.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { LoginStore, StoredLogin } from '../core/history.ts'
import { memoryTtlStore, sharedLogins } from './ttl-store.ts'

ttlStoreContract('memory', async (most) => {
  const clock = createManualClock()
  return { ttlStore: memoryTtlStore(clock, most), over: async () => clock.advance(1_000) }
})

test('B10: sharedLogins finds a login of another process until one of them ends it', async () => {
  const shared = memoryTtlStore(createManualClock())
  const login = { digest: 'd', owner: 'o', sealed: 's', until: 1 }
  const machine = () => {
    const own = new Map<string, StoredLogin>()
    const local: LoginStore = {
      add: async (added) => own.set(added.digest, added).size > 0,
      find: async (digest) => own.get(digest) ?? null,
      // As if the process ended in between.
      remove: async () => {},
    }
    return { local, logins: sharedLogins(local, shared) }
  }
  const [one, another] = [machine(), machine()]
  expect(await one.logins.add(login)).toBe(true)
  expect(await another.logins.find('d')).toEqual(login)
  await another.logins.remove('d')
  expect(await one.local.find('d')).toEqual(login)
  expect(await one.logins.find('d')).toBeNull()
  expect(await another.logins.find('other')).toBeNull()
})

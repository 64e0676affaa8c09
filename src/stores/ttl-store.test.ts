import { ttlStoreContract } from '../../tests/contract/ttl-store.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { memoryTtlStore } from './ttl-store.ts'

ttlStoreContract('memory', async (most) => {
  const clock = createManualClock()
  return { ttlStore: memoryTtlStore(clock, most), over: async () => clock.advance(1_000) }
})

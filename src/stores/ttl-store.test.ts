import { keepsakesContract } from '../../tests/contract/keepsakes.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { memoryTtlStore } from './ttl-store.ts'

keepsakesContract('memory', async (most) => {
  const clock = createManualClock()
  return { ttlStore: memoryTtlStore(clock, most), over: async () => clock.advance(1_000) }
})

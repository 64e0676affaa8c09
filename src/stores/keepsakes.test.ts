import { keepsakesContract } from '../../tests/contract/keepsakes.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { memoryKeepsakes } from './keepsakes.ts'

keepsakesContract('memory', async (most) => {
  const clock = createManualClock()
  return { keepsakes: memoryKeepsakes(clock, most), over: async () => clock.advance(1_000) }
})

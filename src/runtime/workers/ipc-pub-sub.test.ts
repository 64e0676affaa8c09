import { afterAll, expect, test } from 'vitest'
import { bulletinContract } from '../../../tests/contract/bulletin.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { ipcPubSub } from './ipc-stores.ts'
import { workersOf } from './line.fixture.ts'
import { createLine, type Port } from './line.ts'

const open = new DisposableStack()
afterAll(() => open.dispose())

bulletinContract('the line of workers', async (count) => open.use(workersOf(count)).bulletins)

test('B10: what is told while the first process is gone is lost, and nobody fails', () => {
  const port: Port = {
    send() {
      throw new Error('the channel is closed')
    },
    onMessage() {},
  }
  const line = createLine({ port, answers: {}, other: 'the first process', clock: systemClock, log: silentLog })
  const pubSub = ipcPubSub(line, silentLog)
  expect(() => pubSub.publish('a', 'lost')).not.toThrow()
})

import { afterAll, expect, test } from 'vitest'
import { pubSubContract } from '../../../tests/contract/pub-sub.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import type { RpcPort } from '../../lib/port-rpc.ts'
import { ipcPubSub } from './ipc-stores.ts'
import { connectRpc } from './protocol.ts'
import { workersOf } from './rpc.fixture.ts'

const open = new DisposableStack()
afterAll(() => open.dispose())

pubSubContract('IPC of workers', async (count) => open.use(workersOf(count)).pubSubs)

test('B10: messages published while the primary is gone are lost, without an error', () => {
  const port: RpcPort = {
    send() {
      throw new Error('the channel is closed')
    },
    onMessage() {},
  }
  const rpc = connectRpc({ port, methods: {}, peer: 'the primary', clock: systemClock, log: silentLog })
  const pubSub = ipcPubSub(rpc, silentLog)
  expect(() => pubSub.publish('a', 'lost')).not.toThrow()
})

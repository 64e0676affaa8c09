import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import type { PubSub } from '../../core/cluster.ts'
import { silentLog } from '../../core/log.ts'
import type { RpcMethods, RpcPeer, RpcPort } from '../../lib/port-rpc.ts'
import {
  broadcastTo,
  type DeliverMethods,
  ipcPubSub,
  type PrimaryServiceMethods,
  PrimaryServices,
} from './ipc-stores.ts'
import { connectRpc } from './protocol.ts'

const over = (port: MessagePort): RpcPort => ({
  send: (message) => port.postMessage(message),
  onMessage(listener) {
    port.on('message', listener)
    // The port must not keep the process alive.
    port.unref()
  },
})

export interface TestRpc extends Disposable {
  readonly rpc: RpcPeer<PrimaryServiceMethods>
  readonly log: KeptLog
}

/** A worker's connection to the primary, over a channel that copies messages. */
export function connectToPrimary(services: PrimaryServices = new PrimaryServices(systemClock), name = 'one'): TestRpc {
  return connectTo(services.methodsFor(name, () => {}))
}

export function connectTo(methods: RpcMethods, clock: Clock = systemClock): TestRpc {
  const { port1, port2 } = new MessageChannel()
  const log = createKeptLog()
  connectRpc({ port: over(port1), methods, peer: 'the worker', clock, log })
  const rpc = connectRpc<PrimaryServiceMethods>({ port: over(port2), methods: {}, peer: 'the primary', clock, log })
  return { rpc, log, [Symbol.dispose]: () => port1.close() }
}

export interface TestWorkers extends Disposable {
  readonly pubSubs: readonly PubSub[]
}

/** Workers that publish to one another through a primary, over channels that copy messages. */
export function workersOf(count: number): TestWorkers {
  const channels = Array.from({ length: count }, () => new MessageChannel())
  const common = { clock: systemClock, log: silentLog }
  const workers: { readonly rpc: RpcPeer<DeliverMethods> }[] = channels.map(({ port1 }, index) => {
    const methods = { spread: broadcastTo(() => workers.filter((_, other) => other !== index)) }
    return { rpc: connectRpc<DeliverMethods>({ ...common, port: over(port1), methods, peer: `worker ${index}` }) }
  })
  const pubSubs = channels.map(({ port2 }) => {
    const methods: DeliverMethods = { hear: (topic, text) => pubSub.deliver(topic, text) }
    const pubSub = ipcPubSub(connectRpc({ ...common, port: over(port2), methods, peer: 'the primary' }), silentLog)
    return pubSub
  })
  return {
    pubSubs,
    [Symbol.dispose]() {
      for (const { port1 } of channels) port1.close()
    },
  }
}

import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import type { PubSub } from '../../core/pub-sub.ts'
import { broadcastTo, type DeliverMethods, ipcPubSub } from './ipc-stores.ts'
import { type Answers, createLine, type Line, type Port } from './line.ts'
import { createPrimaryServices, type PrimaryServiceMethods, type PrimaryServices } from './primary-services.ts'

const over = (port: MessagePort): Port => ({
  send: (message) => port.postMessage(message),
  onMessage(listener) {
    port.on('message', listener)
    // Nobody waits for a test's messages.
    port.unref()
  },
})

export interface TestLine extends Disposable {
  readonly line: Line<PrimaryServiceMethods>
  readonly log: KeptLog
}

/** A worker's line to a desk, over a channel that copies whatever goes through it. */
export function lineToDesk(services: PrimaryServices = createPrimaryServices(systemClock), name = 'one'): TestLine {
  return lineTo(services.methodsFor(name, () => {}))
}

export function lineTo(answers: Answers, clock: Clock = systemClock): TestLine {
  const { port1, port2 } = new MessageChannel()
  const log = createKeptLog()
  createLine({ port: over(port1), answers, other: 'the worker', clock, log })
  const line = createLine<PrimaryServiceMethods>({
    port: over(port2),
    answers: {},
    other: 'the first process',
    clock,
    log,
  })
  return { line, log, [Symbol.dispose]: () => port1.close() }
}

export interface TestWorkers extends Disposable {
  readonly bulletins: readonly PubSub[]
}

/** Workers that tell one another by way of a first process, over channels that copy whatever goes through them. */
export function workersOf(count: number): TestWorkers {
  const channels = Array.from({ length: count }, () => new MessageChannel())
  const common = { clock: systemClock, log: silentLog }
  const workers: { readonly line: Line<DeliverMethods> }[] = channels.map(({ port1 }, index) => {
    const answers = { spread: broadcastTo(() => workers.filter((_, other) => other !== index)) }
    return { line: createLine<DeliverMethods>({ ...common, port: over(port1), answers, other: `worker ${index}` }) }
  })
  const bulletins = channels.map(({ port2 }) => {
    const answers: DeliverMethods = { hear: (topic, text) => pubSub.deliver(topic, text) }
    const pubSub = ipcPubSub(createLine({ ...common, port: over(port2), answers, other: 'the first' }), silentLog)
    return pubSub
  })
  return {
    bulletins,
    [Symbol.dispose]() {
      for (const { port1 } of channels) port1.close()
    },
  }
}

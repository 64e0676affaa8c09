import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Started, stopping } from '../targets/child.ts'
import type { Aim, Order, Sample } from './orders.ts'

/** The load generator, seen from the outside. One order at a time. */
export interface Generator extends AsyncDisposable {
  run(order: Omit<Extract<Order, { kind: 'run' }>, 'kind'>): Promise<Sample>
  /** Leaves calls hanging: sends one on each of so many connections and waits for none. */
  hold(aim: Aim, connections: number): Promise<void>
  /** Lets go of them. */
  release(): Promise<void>
}

export function startGenerator(): Generator {
  const child = fork(fileURLToPath(new URL('./generator.ts', import.meta.url)), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const started: Started = stopping(child, 'the load generator')

  const tell = (order: Order): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const ended = () => reject(new Error('the load generator ended'))
    child.once('exit', ended)
    child.once('message', (said: { answer?: unknown; failure?: string }) => {
      child.off('exit', ended)
      if (said.failure === undefined) resolve(said.answer)
      else reject(new Error(said.failure))
    })
    child.send(order)
    return promise
  }
  return {
    run: (order) => tell({ kind: 'run', ...order }) as Promise<Sample>,
    hold: async (aim, connections) => void (await tell({ kind: 'hold', aim, connections })),
    release: async () => void (await tell({ kind: 'release' })),
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  }
}

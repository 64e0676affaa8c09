import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { createLine, type Line, type Port } from './line.ts'
import { type PrimaryAnswers, type Started, type WorkerAnswers, workerVariable } from './protocol.ts'

/** One worker, as the first process sees it. */
export interface Hand {
  readonly number: number
  readonly name: string
  readonly line: Line<WorkerAnswers>
  /** What it said when it began to take requests. */
  readonly listening: Promise<unknown>
  readonly ended: Promise<Ending>
  /** Another one has its place: when it ends, nobody follows. */
  retired: boolean
  /** Lets it finish what it does; kills it where that takes longer. */
  stop(patienceMs: number, how?: { readonly replaced: boolean }): void
  kill(): void
}

export interface Ending {
  readonly code: number | null
  readonly signal: string | null
}

export interface HandOptions {
  readonly number: number
  readonly of: number
  /** What a worker of this name may ask. */
  answers(name: string): Omit<PrimaryAnswers, 'listening'>
  readonly clock: Clock
  readonly log: Log
}

/** A worker is asked for nothing but its metrics, which a busy one may take a moment for. */
const pageMs = 2_000

export function startHand({ number, of, answers, clock, log }: HandOptions): Hand {
  const name = randomBytes(6).toString('base64url')
  const started: Started = { name, number, of }
  const worker = cluster.fork({ [workerVariable]: JSON.stringify(started) })
  const listening = Promise.withResolvers<unknown>()
  const ended = Promise.withResolvers<Ending>()
  worker.on('exit', (code, signal) => ended.resolve({ code, signal }))
  // A channel that breaks is told by the end of the process.
  worker.on('error', () => {})
  const kill = () => void worker.process.kill('SIGKILL')
  const port: Port = {
    send: (message) => worker.isConnected() && worker.send(message as object),
    onMessage: (listener) => void worker.on('message', listener),
  }
  const table: PrimaryAnswers = { ...answers(name), listening: listening.resolve }
  const other = `worker ${number}`
  const line = createLine<WorkerAnswers>({ port, answers: table, other, patienceMs: () => pageMs, clock, log })
  return {
    number,
    name,
    line,
    listening: listening.promise,
    ended: ended.promise,
    retired: false,
    stop(patience, { replaced } = { replaced: false }) {
      // Before it takes requests nobody there would hear it.
      void listening.promise.then(() => line.tell('stop', replaced))
      const timer = clock.after(patience, kill)
      void ended.promise.then(() => timer[Symbol.dispose]())
    },
    kill,
  }
}

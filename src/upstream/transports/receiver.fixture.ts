import { existsSync, readFileSync } from 'node:fs'
import type { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { type Message, readMessage, requestBytes } from '../../wire/message.ts'
import type { Transport, TransportReceiver } from './transport.ts'

export type Heard = Message & { readonly exchange: number | undefined }

/** A receiver that remembers all events, and can wait for them. */
export interface Collector extends TransportReceiver {
  readonly heard: Heard[]
  readonly failures: Map<number, ToolwayError>
  /** The error with which the connection was closed. */
  readonly down: Promise<ToolwayError>
  readonly downs: number
  /** Resolves with the first message that fits, even if it has already arrived. */
  until(fits: (message: Heard) => boolean): Promise<Heard>
  failure(exchange: number): Promise<ToolwayError>
}

export function collector(): Collector {
  const heard: Heard[] = []
  const failures = new Map<number, ToolwayError>()
  const down = Promise.withResolvers<ToolwayError>()
  const waiting = new Set<() => void>()
  let downs = 0
  const news = (): void => {
    for (const look of [...waiting]) look()
  }
  const waitFor = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return {
    heard,
    failures,
    down: down.promise,
    get downs() {
      return downs
    },
    until: (fits) => waitFor(() => heard.find(fits)),
    failure: (exchange) => waitFor(() => failures.get(exchange)),
    message(body, exchange) {
      const message = readMessage(body)
      heard.push({ ...message, exchange })
      news()
      return message.kind === 'response'
    },
    failed(exchange, error) {
      failures.set(exchange, error)
      news()
    },
    closed(error) {
      downs++
      down.resolve(error)
    },
  }
}

/** The members of results that these tests use. */
export interface Answer {
  readonly protocolVersion: string
  readonly serverInfo: { readonly name: string }
  readonly tools: readonly { readonly name: string }[]
  readonly content: readonly { readonly type: string; readonly text: string }[]
}

/** Sends a request and waits for its response; returns the value of the result. */
export async function ask(
  transport: Transport,
  from: Collector,
  id: number,
  method: string,
  params: object = {},
): Promise<Answer> {
  await transport.send({ body: requestBytes(id, method, Json.of(params)), exchange: id })
  const answer = await from.until((message) => 'id' in message && message.id === id && message.kind !== 'request')
  if (answer.kind !== 'response') throw new Error(`no result but ${JSON.stringify(answer)}`)
  return JSON.parse(answer.result.toString())
}

/** Whether a process is running. A zombie does not count as running. */
export function isRunning(pid: number): boolean {
  try {
    if (!existsSync('/proc/self/stat')) return process.kill(pid, 0)
    const state = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.[0]
    return state !== 'Z' && state !== 'X'
  } catch {
    return false
  }
}

import { randomUUID } from 'node:crypto'
import type { CapturedCall, CaptureStore } from '../core/captures.ts'
import type { Clock } from '../core/clock.ts'
import type { PubSub } from '../core/cluster.ts'
import { jsonValue } from '../lib/parse-json.ts'

/** Captured calls of all workers and replicas (B10, V11). */
export interface SharedCaptures extends Disposable {
  /** Resolves with undefined if no process has the call, or the one that has it does not reply. Asks others unless told not to. */
  find(id: string, elsewhere?: boolean): Promise<CapturedCall | undefined>
}

interface SharedCapturesOptions {
  readonly captures: Pick<CaptureStore, 'find'>
  /** Undefined if this is the only process. */
  readonly pubSub: PubSub | undefined
  readonly clock: Clock
}

type Message =
  | { readonly request: string; readonly id: string }
  | { readonly request: string; readonly call: CapturedCall }

const topic = 'captures'
/** Only the process that has the call replies, so this is also how long it takes to learn that there is none. */
const replyMs = 500

/** Finds captured calls in other processes. A call's content stays in the process that ran it until somebody looks at it. */
export function shareCaptures({ captures, pubSub, clock }: SharedCapturesOptions): SharedCaptures {
  const requests = new Map<string, (call?: CapturedCall) => void>()
  const publish = (message: Message) => pubSub?.publish(topic, JSON.stringify(message))
  const subscription = pubSub?.subscribe(topic, (text) => {
    const message = jsonValue(text) as Message
    if ('call' in message) return requests.get(message.request)?.(message.call)
    const call = captures.find(message.id)
    if (call) publish({ request: message.request, call })
  })

  const ask = async (id: string): Promise<CapturedCall | undefined> => {
    const request = randomUUID()
    const { promise, resolve } = Promise.withResolvers<CapturedCall | undefined>()
    requests.set(request, resolve)
    using _timer = clock.after(replyMs, () => resolve(undefined))
    publish({ request, id })
    try {
      return await promise
    } finally {
      requests.delete(request)
    }
  }

  return {
    find: async (id, elsewhere = true) => captures.find(id) ?? (pubSub && elsewhere ? ask(id) : undefined),
    [Symbol.dispose]: () => subscription?.[Symbol.dispose](),
  }
}

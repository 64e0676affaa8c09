import type { Clock } from '../core/clock.ts'
import { ServerError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { asObject, type OpenLine } from './introduction.ts'
import { phrase } from './phrase.ts'

/** A server of the stateless era tells of changes only where somebody listens: this does, once for everybody. */
export interface Listening extends Disposable {
  /** Listens for the lists that the server says may change, and for these resources, from now on. */
  listen(uris: readonly string[]): void
}

export interface ListeningOptions {
  readonly server: string
  heard(method: string, params: Buffer | undefined): void
  /** Something may have changed while nobody listened. */
  missed(): void
  readonly clock: Clock
  readonly log: Log
}

const firstPauseMs = 1_000
const maxPauseMs = 30_000
const methodNotFound = -32601

export function createListening(open: OpenLine, options: ListeningOptions): Listening {
  const { server, missed, clock, log } = options
  const lists = listsOf(open)
  let uris: readonly string[] = []
  let current: AbortController | undefined
  let timer: Disposable | undefined
  let over = false
  let pauseMs = firstPauseMs

  const heard = (method: string, params: Buffer | undefined) => {
    // It listens again, and whatever changed in between was not told.
    if (pauseMs > firstPauseMs && method === 'notifications/subscriptions/acknowledged') missed()
    pauseMs = firstPauseMs
    options.heard(method, params)
  }

  const start = () => {
    current?.abort(replaced)
    const filter = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) }
    if (over || Object.keys(filter).length === 0) return
    const controller = new AbortController()
    current = controller
    const members = [Buffer.from(`"notifications":${JSON.stringify(filter)}`)]
    const request = phrase(open, {
      method: 'subscriptions/listen',
      members,
      capabilities: {},
      heard,
      signal: controller.signal,
    })
    open.connection.request(request).then(
      () => later(controller),
      (error) => {
        if (controller.signal.aborted) return
        log.debug({ server, err: error }, 'stopped hearing of changes of a server')
        if (error instanceof ServerError && error.error.value.code === methodNotFound) return
        later(controller)
      },
    )
  }

  /** The server may end a stream whenever it likes; nothing is remembered, so all of it is asked for again. */
  const later = (ended: AbortController) => {
    if (over || ended !== current) return
    timer = clock.after(pauseMs, start)
    pauseMs = Math.min(pauseMs * 2, maxPauseMs)
  }

  start()
  return {
    listen(wanted) {
      uris = wanted
      timer?.[Symbol.dispose]()
      start()
    },
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
      current?.abort(replaced)
    },
  }
}

const replaced = new Error('listening to something else now')

/** A server that says a list may change is believed; others are asked again from time to time. */
function listsOf({ introduction }: OpenLine): Record<string, true> {
  const changes = (name: string) => asObject(introduction.capabilities[name]).listChanged === true
  return {
    ...(changes('tools') && { toolsListChanged: true as const }),
    ...(changes('prompts') && { promptsListChanged: true as const }),
    ...(changes('resources') && { resourcesListChanged: true as const }),
  }
}

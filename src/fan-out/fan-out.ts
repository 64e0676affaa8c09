import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { PubSub } from '../core/pub-sub.ts'
import type { Breakers } from '../pipeline/breaker/breakers.ts'
import { createLists, type Lists } from './lists.ts'
import { type NamedServer, nameFor, type Present, serverNamed } from './named-server.ts'

export interface FanOutOptions {
  /** Undefined where there are no others. */
  readonly pubSub: PubSub | undefined
  readonly breakers: Pick<Breakers, 'onChange' | 'hint'>
  readonly present: Present
  /** Reads the configuration again, here alone. */
  reload(): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** What happens at one replica and concerns all of them (B10). */
export interface FanOut extends Disposable {
  /** Reads the configuration again, here and at all others; settles when that is done here. */
  reload(): Promise<void>
  /** Lets others know when what this server offers has changed. */
  readonly watch: Lists['watch']
}

export function createFanOut({ pubSub, breakers, present, reload, clock, log }: FanOutOptions): FanOut {
  if (pubSub === undefined) return { reload, watch() {}, [Symbol.dispose]() {} }
  using open = new DisposableStack()
  const lists = open.use(createLists({ pubSub, present, clock, log }))
  open.use(
    pubSub.subscribe('reload', () => {
      log.info({}, 'another replica was told to reload, and so do we')
      void reload()
    }),
  )
  open.use(
    pubSub.subscribe('breaker', (text) => {
      const named = JSON.parse(text) as NamedServer
      if (serverNamed(named, present)) breakers.hint(named.server)
    }),
  )
  open.use(
    breakers.onChange((server, state) => {
      const transport = present().servers.get(server)?.made.config.transport
      const named = nameFor(server, present)
      // A process of ours says nothing about those of others.
      if (state !== 'open' || !named || transport === undefined || transport === 'stdio') return
      pubSub.publish('breaker', JSON.stringify(named))
    }),
  )
  const listening = open.move()
  return {
    reload() {
      pubSub.publish('reload', '')
      return reload()
    },
    watch: lists.watch,
    [Symbol.dispose]: () => listening.dispose(),
  }
}

import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { PubSub } from '../core/pub-sub.ts'
import type { Server } from '../upstream/server.ts'
import { createChangedLists } from './changed-lists.ts'
import { type NamedServer, nameFor, type Present, serverNamed } from './named-server.ts'

export interface ListsOptions {
  readonly pubSub: PubSub
  readonly present: Present
  readonly clock: Clock
  readonly log: Log
}

/** Tells others of lists that have changed here, and asks servers whose lists have changed at others (F4, B10). */
export interface Lists extends Disposable {
  watch(name: string, server: Server): void
}

interface News extends NamedServer {
  /** Digests of the lists as they are now: who has found them already need not ask. */
  readonly lists: readonly string[]
}

/** Many replicas tell of one change, and a server may tell each of them by itself, which is better. */
const gatherMs = 250

export function createLists({ pubSub, present, clock, log }: ListsOptions): Lists {
  const changed = createChangedLists()
  /** What was told and is not looked into yet, by server. */
  const told = new Map<string, Set<string>>()
  const timers = new Map<string, Disposable>()
  /** Those that are asked because of what others told: what comes of it they know. */
  const asked = new Set<Server>()

  const lookSoon = (news: NamedServer) => {
    timers.set(
      news.server,
      clock.after(gatherMs, () => void look(news)),
    )
  }

  const look = async (news: NamedServer) => {
    const { server, made } = serverNamed(news, present) ?? {}
    // What is told while it answers may be newer than the answer.
    if (server && asked.has(server)) return lookSoon(news)
    const lists = told.get(news.server) ?? new Set()
    told.delete(news.server)
    timers.delete(news.server)
    if (!server) return
    // A process that sleeps is not woken for this; it is asked when it wakes.
    if (made?.config.transport === 'stdio' && server.control.connections === 0) return
    const others = changed.others(server, lists)
    if (others.length === 0) return
    log.debug({ server: server.name }, 'a list has changed at another replica: the server is asked again')
    asked.add(server)
    await Promise.all(others.map((source) => source.refresh()))
    asked.delete(server)
  }

  const hearing = pubSub.subscribe('lists', (text) => {
    const news = JSON.parse(text) as News
    if (!serverNamed(news, present)) return
    const lists = told.get(news.server) ?? new Set()
    for (const list of news.lists) lists.add(list)
    told.set(news.server, lists)
    if (!timers.has(news.server)) lookSoon(news)
  })

  return {
    watch(name, server) {
      server.onChange(() => {
        const lists = changed.look(server)
        const named = nameFor(name, present)
        // One that another configuration has taken the place of has nothing to say any more.
        const ours = present().servers.get(name)?.server === server
        if (lists.length === 0 || !named || !ours || asked.has(server)) return
        pubSub.publish('lists', JSON.stringify({ ...named, lists } satisfies News))
      })
    },
    [Symbol.dispose]() {
      hearing[Symbol.dispose]()
      for (const timer of timers.values()) timer[Symbol.dispose]()
      timers.clear()
    },
  }
}

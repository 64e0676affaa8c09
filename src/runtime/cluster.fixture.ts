import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../tests/fixtures/log.ts'
import { createTopicListeners, type PubSub, type TopicListeners } from '../core/cluster.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import { Cluster, type ClusterOptions, type CurrentServers } from './cluster.ts'

interface ReplicaOptions {
  /** Its only server, `files`. By default it has none. */
  readonly server?: UpstreamServer
  readonly transport?: 'stdio' | 'http'
  readonly origin?: string
  /** Whether it is a worker of one gateway, with the other replicas for which this is true. */
  readonly isWorker?: boolean
}

export interface TestReplica extends Pick<Cluster, 'reload' | 'control' | 'keysChanged' | 'watch'>, Disposable {
  /** How often it has read its configuration. */
  readonly reloads: number
  /** How often it has read its keys. */
  readonly keyReads: number
  /** The servers whose breaker it has reset. */
  readonly forgotten: readonly string[]
  /** The servers about which it got a hint. */
  readonly hints: readonly string[]
  readonly log: KeptLog
  /** Its breaker before a server has become this. */
  breakerIs(server: string, state: 'open' | 'half-open' | 'closed'): void
}

export interface TestFleet {
  readonly clock: ManualClock
  /** Every published message. */
  readonly told: readonly { readonly topic: string; readonly text: string }[]
  join(options?: ReplicaOptions): TestReplica
}

/** Replicas that receive messages of each other immediately. */
export function createTestFleet(): TestFleet {
  const clock = createManualClock()
  const told: { topic: string; text: string }[] = []
  const replicas = new Set<TopicListeners>()
  const workers = new Set<TopicListeners>()
  return {
    clock,
    told,
    join({ server, transport = 'http', origin = 'here', isWorker = false } = {}) {
      const log = createKeptLog()
      const open = (among: Set<TopicListeners>): PubSub => {
        const board = createTopicListeners(log)
        among.add(board)
        return {
          subscribe: board.subscribe,
          publish(topic, text) {
            told.push({ topic, text })
            for (const other of among) if (other !== board) other.deliver(topic, text)
          },
        }
      }
      const pubSub = open(replicas)
      const siblings = isWorker ? open(workers) : undefined
      const servers = new Map(server ? [['files', { server, builtFrom: { config: { transport } } }]] : [])
      const origins = new Map(server ? [['files', { hash: origin, text: '' }]] : [])
      const current = (() => ({ servers, origins })) as unknown as CurrentServers
      const hints: string[] = []
      const forgotten: string[] = []
      const onBreaker = new Set<Parameters<ClusterOptions['breakers']['onChange']>[0]>()
      const breakers: ClusterOptions['breakers'] = {
        hint: (name) => void hints.push(name),
        forget: (name) => void forgotten.push(name),
        onChange(listener) {
          onBreaker.add(listener)
          return { [Symbol.dispose]: () => void onBreaker.delete(listener) }
        },
      }
      let reloads = 0
      const reload = async () => void reloads++
      let keyReads = 0
      const readKeys = () => void keyReads++
      const cluster = new Cluster({ pubSub, workers: siblings, breakers, current, reload, readKeys, clock, log })
      if (server) cluster.watch('files', server)
      return {
        reload: () => cluster.reload(),
        control: (name, action) => cluster.control(name, action),
        keysChanged: () => cluster.keysChanged(),
        watch: (name, watched) => cluster.watch(name, watched),
        [Symbol.dispose]: () => cluster[Symbol.dispose](),
        get reloads() {
          return reloads
        },
        get keyReads() {
          return keyReads
        },
        hints,
        forgotten,
        log,
        breakerIs(name, state) {
          for (const listener of onBreaker) listener(name, state)
        },
      }
    },
  }
}

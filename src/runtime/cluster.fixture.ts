import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../tests/fixtures/log.ts'
import { createTopicListeners, type PubSub, type TopicListeners } from '../core/cluster.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import { type Cluster, type ClusterOptions, type CurrentServers, createCluster } from './cluster.ts'

interface ReplicaOptions {
  /** Its only server, `files`. By default it has none. */
  readonly server?: UpstreamServer
  readonly transport?: 'stdio' | 'http'
  readonly origin?: string
}

export interface TestReplica extends Cluster {
  /** How often it has read its configuration. */
  readonly reloads: number
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
  const boards = new Set<TopicListeners>()
  return {
    clock,
    told,
    join({ server, transport = 'http', origin = 'here' } = {}) {
      const log = createKeptLog()
      const board = createTopicListeners(log)
      boards.add(board)
      const pubSub: PubSub = {
        subscribe: board.subscribe,
        publish(topic, text) {
          told.push({ topic, text })
          for (const other of boards) if (other !== board) other.deliver(topic, text)
        },
      }
      const servers = new Map(server ? [['files', { server, builtFrom: { config: { transport } } }]] : [])
      const origins = new Map(server ? [['files', { hash: origin, text: '' }]] : [])
      const current = (() => ({ servers, origins })) as unknown as CurrentServers
      const hints: string[] = []
      const onBreaker = new Set<Parameters<ClusterOptions['breakers']['onChange']>[0]>()
      const breakers: ClusterOptions['breakers'] = {
        hint: (name) => void hints.push(name),
        onChange(listener) {
          onBreaker.add(listener)
          return { [Symbol.dispose]: () => void onBreaker.delete(listener) }
        },
      }
      let reloads = 0
      const reload = async () => void reloads++
      const cluster = createCluster({ pubSub, breakers, current, reload, clock, log })
      if (server) cluster.watch('files', server)
      return {
        ...cluster,
        get reloads() {
          return reloads
        },
        hints,
        log,
        breakerIs(name, state) {
          for (const listener of onBreaker) listener(name, state)
        },
      }
    },
  }
}

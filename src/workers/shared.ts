import type { Buckets } from '../core/buckets.ts'
import type { CacheLimits, CacheStore } from '../core/cache.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { PubSub } from '../core/pub-sub.ts'
import type { TtlStore } from '../core/ttl-store.ts'
import type { IpcMembership } from './ipc-membership.ts'
import type { Page } from './merge-pages.ts'

/** What a gateway is given that is one of several workers: it shares with them what it would keep alone. */
export interface Shared {
  /** Which of them it is, from 1 on, and of how many. */
  readonly number: number
  readonly of: number
  open(options: SharedOptions): Promise<SharedStores>
  /** The workers of this machine, once it is open. */
  readonly membership: IpcMembership | undefined
  /** Where the others reach this one. */
  join(address: string): Promise<void>
  /** The worker that answers people, so that whoever logs in is known to it the next time; undefined where it is this one. */
  lead(): string | undefined
  /** The metrics of all workers, from those of this one. */
  pages(own: (accept?: string) => Page): (accept?: string) => Promise<Page>
}

export interface SharedOptions {
  /** Counts while the first process does not answer. */
  readonly local: Buckets
  readonly limits: CacheLimits
  /** Of the state folder, which all workers share. */
  ownSecret(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

export interface SharedStores {
  readonly buckets: Buckets
  readonly cache: CacheStore
  readonly membership: IpcMembership
  readonly pubSub: PubSub
  readonly ttlStore: TtlStore
  /** The secret that what callers hold is sealed with. */
  readonly secret: string
  /** Whether the first process answers. */
  readonly up: boolean
}

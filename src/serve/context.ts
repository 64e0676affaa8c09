import type { Access } from '../core/access.ts'
import type { Clock } from '../core/clock.ts'
import type { Membership } from '../core/cluster.ts'
import type { Budgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'

/** What all front ends of a gateway share. */
export interface ServeContext {
  readonly access: Access
  readonly info: GatewayInfo
  readonly budgets: Budgets
  /** Membership among replicas or workers; undefined if this is the only process. */
  readonly membership?: Membership | undefined
  readonly clock: Clock
  readonly log: Log
}

export interface GatewayInfo {
  readonly name: string
  readonly version: string
  readonly instructions?: string
}

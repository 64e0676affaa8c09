import type { DeliverMethods, PublishMethods } from './ipc-stores.ts'
import type { PrimaryServiceMethods, WorkerMember } from './primary-services.ts'

/** The variable by which the first process tells a worker who it is. */
export const workerVariable = 'TOOLWAY_WORKER'

/** What a worker is told at its start. */
export interface WorkerIdentity {
  /** One that no worker had before: what that one has handed out must not be taken for its own. */
  readonly name: string
  readonly number: number
  readonly of: number
}

/** What workers can ask the first process for. */
export type PrimaryMethods = PrimaryServiceMethods &
  PublishMethods & {
    listening(facts: unknown): void
    /** Those of all workers but the one that asks. */
    pages(accept?: string): Promise<readonly WorkerMetricsPage[]>
  }

/** What the first process can ask of a worker. */
export type WorkerMethods = DeliverMethods & {
  members(members: readonly WorkerMember[]): void
  /** `replaced`: others go on at the same address, so that clients can be led there. */
  stop(replaced: boolean): void
  page(accept?: string): MetricsPage | undefined
}

/** What a scraper gets. */
export interface MetricsPage {
  readonly contentType: string
  readonly body: string
}

/** The metrics of one worker. */
export interface WorkerMetricsPage extends MetricsPage {
  readonly number: number
}

import type { Hears, Spreads } from './ipc-stores.ts'
import type { DeskAnswers, Member } from './primary-services.ts'

/** The variable by which the first process tells a worker who it is. */
export const workerVariable = 'TOOLWAY_WORKER'

/** What a worker is told at its start. */
export interface Started {
  /** One that no worker had before: what that one has handed out must not be taken for its own. */
  readonly name: string
  readonly number: number
  readonly of: number
}

/** What workers can ask the first process for. */
export type PrimaryAnswers = DeskAnswers &
  Spreads & {
    listening(facts: unknown): void
    /** Those of all workers but the one that asks. */
    pages(accept?: string): Promise<readonly WorkerPage[]>
  }

/** What the first process can ask of a worker. */
export type WorkerAnswers = Hears & {
  members(members: readonly Member[]): void
  /** `replaced`: others go on at the same address, so that clients can be led there. */
  stop(replaced: boolean): void
  page(accept?: string): Page | undefined
}

/** What a scraper gets. */
export interface Page {
  readonly contentType: string
  readonly body: string
}

/** The metrics of one worker. */
export interface WorkerPage extends Page {
  readonly number: number
}

import type { Lines } from './lines.ts'

/** A process that runs for a server. */
export interface ServerProcess {
  readonly pid: number
  readonly startedAt: number
  /** How often one before it has ended by itself, was given up, or was ended by an operator. */
  readonly restarts: number
}

/** The process of the line that was opened last; none while the server sleeps, or where it runs elsewhere. */
export function processOf({ all, breaks }: Pick<Lines, 'all' | 'breaks'>): ServerProcess | undefined {
  let latest: ServerProcess | undefined
  for (const { current, openedAt } of all) {
    const pid = current?.connection.transport.pid
    if (pid === undefined || openedAt === undefined || openedAt < (latest?.startedAt ?? 0)) continue
    latest = { pid, startedAt: openedAt, restarts: breaks }
  }
  return latest
}

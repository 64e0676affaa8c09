import { hostname } from 'node:os'
import type { Log } from '../../core/log.ts'
import type { Lane } from './lane.ts'
import { lanesOf } from './layout.ts'

export interface Introduction {
  readonly folder: string
  readonly version: string
  readonly log: Log
}

/** Writes down, and tells the operator, who has taken a lane and in which state it was. */
export function introduce({ name, chain, found }: Lane, { folder, version, log }: Introduction): void {
  const { torn, unproven, findings } = found
  chain.appendOwn({
    operation: 'start',
    pid: process.pid,
    host: hostname(),
    version,
    lanes: lanesOf(folder),
    ...(torn > 0 && { torn }),
    ...(unproven > 0 && { unproven }),
  })
  if (torn > 0) log.warn({ lane: name, bytes: torn }, 'cut a record off the audit log that was left half written')
  for (const finding of findings) {
    chain.appendOwn({ operation: 'gap', ...finding })
    log.error({ lane: name, ...finding }, 'the audit log is not as it was left; `toolway audit verify` says more')
  }
}

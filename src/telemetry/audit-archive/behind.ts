import { readFileSync } from 'node:fs'
import type { ArchiveChain } from '../../core/audit-archive.ts'
import type { VerifyProblem } from '../audit/problem.ts'
import type { LaneReport } from '../audit/verify.ts'
import { replicaFile } from './spool.ts'

/**
 * What an archive says against the log that it was copied from: records that are in the archive and no longer in the
 * log, beyond its end. Those that retention removed lie before its end. A lane that began anew is compared with what
 * was copied since; `verifyArchive` tells of the break itself.
 */
export function behindArchive(
  folder: string,
  lanes: readonly Pick<LaneReport, 'lane' | 'last'>[],
  chains: readonly ArchiveChain[],
): VerifyProblem[] {
  const replica = replicaIn(folder)
  const own = chains.filter((chain) => chain.replica === replica)
  return own.flatMap(({ lane, epoch, seq }) => {
    if (own.some((other) => other.lane === lane && other.epoch > epoch)) return []
    const last = lanes.find((report) => report.lane === lane)?.last?.seq ?? 0
    if (last >= seq) return []
    const message = `the lane ends with record ${last}, but PostgreSQL has a copy of record ${seq}: it was deleted, cut off or rolled back`
    return [{ kind: 'rolled_back', lane, seq, message } as const]
  })
}

function replicaIn(folder: string): string | undefined {
  try {
    return readFileSync(replicaFile(folder), 'utf8').trim()
  } catch {
    return undefined
  }
}

import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { type Chain, createChain } from './chain.ts'
import type { Claim } from './claim.ts'
import { type Commit, createCommit } from './commit.ts'
import type { Files } from './files.ts'
import { headFile, openHead } from './head.ts'
import type { Signer } from './keys.ts'
import { lastKnown, openMark } from './marks.ts'
import { type Resumption, resumeLane } from './recover.ts'
import { openReserve, type Reserve } from './reserve.ts'

export interface LaneOptions {
  readonly folder: string
  readonly signer: Signer
  readonly files: Files
  readonly clock: Clock
  readonly log: Log
  readonly segmentBytes: number
  readonly segmentMs: number
  readonly reserveBytes: number
  /** Where the high-water marks of the lanes are kept, outside the log; nowhere, if absent. */
  readonly marks?: string | undefined
  /** Records that were held could not be written. */
  lost(records: number): void
  /** All that was written up to now is on disk. */
  synced?(): void
  /** A sync failed; see `CommitOptions`. The segment is abandoned already. */
  failed(error: unknown, records: number): void
}

/** A lane that is open for writing, and all that belongs to it. */
export interface Lane {
  readonly name: string
  readonly chain: Chain
  readonly commit: Commit
  readonly reserve: Reserve
  /** What was found when it was opened. */
  readonly found: Pick<Resumption, 'torn' | 'unproven' | 'findings'>
  /** Settles when all that was appended is on disk; rejects, or throws, where that failed. */
  flush(): Promise<void>
  /** Gives it to others. Nobody may be waiting for a commit. */
  close(): void
}

/** Opens a lane that this process has claimed; the lane's `close` also ends the claim. */
export function openLane(claim: Claim, options: LaneOptions): Lane {
  const { folder, signer, files, log } = options
  const name = claim.lane
  const here = join(folder, name)
  using opening = new DisposableStack()
  opening.use(claim)
  const resumption = resumeLane(folder, name, lastKnown(name, options))
  const { seq, hash } = resumption
  const head = openHead(headFile(folder, name), { lane: name, seq, hash }, files, signer)
  opening.defer(() => head.close())
  const mark = openMark(name, options, { lane: name, seq, hash })
  opening.defer(() => mark?.close())
  const reserve = openReserve(join(here, 'reserve'), options.reserveBytes, files)
  opening.defer(() => reserve.close())

  let headFails = false
  const commit = createCommit({
    files,
    from: seq,
    position: () => chain.written,
    synced: (position) => {
      try {
        head.write({ lane: name, ...position })
        mark?.write({ lane: name, ...position })
        headFails = false
      } catch (error) {
        // The records themselves are safe; only a tail that somebody cuts off might go unnoticed until the next time.
        if (!headFails) log.warn({ lane: name, error: String(error) }, 'the head of the audit log cannot be written')
        headFails = true
      }
      options.synced?.()
    },
    failed: (error, records) => {
      chain.abandon()
      options.failed(error, records)
    },
  })
  const chain = createChain({ ...options, lane: name, resumption, opened: commit.track })
  opening.defer(() => commit.close())
  const held = opening.move()
  const flush = () => {
    chain.write()
    return commit.wait(chain.seq)
  }
  return { name, chain, commit, reserve, found: resumption, flush, close: () => held.dispose() }
}

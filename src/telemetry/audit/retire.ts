import type { Clock } from '../../core/clock.ts'
import { tryLane } from './claim.ts'
import { type Introduction, introduce } from './introduce.ts'
import { type Lane, type LaneOptions, openLane } from './lane.ts'
import { lanesOf } from './layout.ts'
import { expiredSegments, removeExpired } from './retention.ts'

export interface RetireOptions extends Omit<LaneOptions, 'failed' | 'lost'>, Introduction {
  readonly clock: Clock
  readonly retainMs: number
  /** The lane of this process, if it has one. */
  own(): Lane | undefined
  /** Makes room for one more record, where a full disk was the reason of this error. */
  makesRoom(lane: Lane, error: unknown): boolean
}

/** Removes what is old from all lanes that nobody else is writing to. Never rejects: what fails is tried again later. */
export async function retire(options: RetireOptions): Promise<void> {
  const { folder, clock, log } = options
  const beforeMs = clock.now() - options.retainMs
  try {
    const own = options.own()
    if (own) await retireOwn(own, beforeMs, options)
    for (const name of lanesOf(folder)) {
      if (name !== own?.name && expiredSegments(folder, name, beforeMs).length > 0) {
        await retireOther(name, beforeMs, options)
      }
    }
  } catch (error) {
    log.warn({ error: String(error) }, 'old audit records could not be removed; it is tried again later')
  }
}

async function retireOwn(own: Lane, beforeMs: number, options: RetireOptions): Promise<void> {
  own.chain.rotateIfOld()
  try {
    await remove(own, beforeMs, options)
  } catch (error) {
    // Removing something is what helps a full disk most.
    if (!options.makesRoom(own, error)) throw error
    await remove(own, beforeMs, options)
  }
}

/** A lane whose process is gone has nobody else who would remove what is old. */
async function retireOther(name: string, beforeMs: number, options: RetireOptions): Promise<void> {
  const claim = tryLane(options.folder, name)
  if (!claim) return
  const lane = openLane(claim, { ...options, failed: () => {}, lost: () => {} })
  try {
    introduce(lane, options)
    await remove(lane, beforeMs, options)
    await lane.commit.wait(lane.chain.appendOwn({ operation: 'checkpoint', final: true }))
  } finally {
    lane.close()
  }
}

async function remove(lane: Lane, beforeMs: number, { folder, files, log }: RetireOptions): Promise<void> {
  const segments = await removeExpired(folder, lane, beforeMs, files)
  if (segments > 0) log.info({ lane: lane.name, segments }, 'removed audit records that are older than audit.retain')
}

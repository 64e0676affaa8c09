import type { Clock } from '../../core/clock.ts'
import { tryLane } from './claim.ts'
import { type Introduction, introduce } from './introduce.ts'
import { type Lane, type LaneOptions, openLane } from './lane.ts'
import { lanesOf } from './layout.ts'
import { type Age, expiredSegments, removeSegments } from './retention.ts'

export interface RetireOptions extends Omit<LaneOptions, 'failed' | 'lost'>, Introduction, Pick<Age, 'copied'> {
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
  const age: Age = { nowMs: clock.now(), retainMs: options.retainMs, ...(options.copied && { copied: options.copied }) }
  try {
    const own = options.own()
    if (own) await retireOwn(own, age, options)
    for (const name of lanesOf(folder)) {
      if (name !== own?.name && expiredSegments(folder, name, age).segments.length > 0) {
        await retireOther(name, age, options)
      }
    }
  } catch (error) {
    log.warn({ error: String(error) }, 'old audit records could not be removed; it is tried again later')
  }
}

async function retireOwn(own: Lane, age: Age, options: RetireOptions): Promise<void> {
  own.chain.rotateIfOld()
  try {
    await remove(own, age, options)
  } catch (error) {
    // Removing something is what helps a full disk most.
    if (!options.makesRoom(own, error)) throw error
    await remove(own, age, options)
  }
}

/** A lane whose process is gone has nobody else who would remove what is old. */
async function retireOther(name: string, age: Age, options: RetireOptions): Promise<void> {
  const claim = tryLane(options.folder, name)
  if (!claim) return
  const lane = openLane(claim, { ...options, failed: () => {}, lost: () => {} })
  try {
    introduce(lane, options)
    await remove(lane, age, options)
    await lane.commit.wait(lane.chain.appendOwn({ operation: 'checkpoint', final: true }))
  } finally {
    lane.close()
  }
}

async function remove(lane: Lane, age: Age, { folder, files, log }: RetireOptions): Promise<void> {
  const { segments, held, uncopied } = expiredSegments(folder, lane.name, age)
  const of = { lane: lane.name }
  if (held > 0) {
    const why = 'audit records older than audit.retain are kept, since they are not copied yet'
    log.warn({ ...of, segments: held }, `${why}; they go when they are twice as old`)
  }
  if (uncopied > 0) {
    log.error({ ...of, segments: uncopied }, 'removing audit records that were never copied: they are too old to wait')
  }
  await removeSegments(folder, lane, segments, files)
  if (segments.length > 0) {
    log.info({ ...of, segments: segments.length }, 'removed audit records that are older than audit.retain')
  }
}

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** A lane that nobody else writes to until it is released. */
export interface Claim extends Disposable {
  readonly lane: string
}

const maxLanes = 1000
const busy = 5

/**
 * Takes the first lane that is free. The lock is an open transaction on the empty database `lock`: the operating
 * system gives it back however the process ends. Nobody else may open that file, since closing it would end the lock.
 */
export function claimLane(folder: string): Claim {
  for (let number = 1; number <= maxLanes; number++) {
    const claim = tryLane(folder, String(number))
    if (claim) return claim
  }
  throw new Error(`all ${maxLanes} lanes of ${folder} are taken; are so many processes running?`)
}

/** Takes this lane unless somebody has it. */
export function tryLane(folder: string, lane: string): Claim | undefined {
  mkdirSync(join(folder, lane), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(join(folder, lane, 'lock'), { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return { lane, [Symbol.dispose]: () => database.close() }
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === busy) return undefined
    throw error
  }
}

import type { Runtime } from '../runtime.ts'
import { bwrapCommand, type Sight, sightOf } from './bwrap.ts'
import { librariesOf } from './libraries.ts'
import { type KernelLimits, limited } from './limited.ts'
import type { Place } from './place.ts'
import { processChild } from './process-child.ts'
import { seccompFilter } from './seccomp.ts'

/** A place where there is a `bwrap`, and whom it is started as, where we may choose. */
export interface WrappedPlace extends Place {
  readonly bwrap: string
  readonly user?: number
}

/** A command behind `bwrap`, where it sees what it is shown, and the shared libraries of its programs. */
export async function wrapped(
  { bwrap, user, limit }: WrappedPlace,
  given: {
    readonly command: readonly string[]
    /** The files that are loaded with shared libraries. */
    readonly programs: readonly string[]
    readonly sights: readonly Sight[]
    readonly hidden?: readonly string[]
    readonly limits: KernelLimits
  },
): Promise<Runtime> {
  const sights = [
    ...(await librariesOf(given.programs)).map(sightOf),
    { from: '/etc/ld.so.cache', to: '/etc/ld.so.cache', optional: true },
    ...given.sights,
  ]
  const filter = seccompFilter()
  const words = bwrapCommand({ ...given, bwrap, sights, filtered: filter !== undefined })
  const options = {
    command: limited(words, given.limits),
    wrapped: true,
    limit,
    ...(filter && { filter }),
    ...(user !== undefined && { user }),
  }
  return { tier: 'bwrap', start: () => processChild(options) }
}

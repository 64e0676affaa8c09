import { honestHeldOut } from './definitions/honest-held-out.ts'
import { honestKnown } from './definitions/honest-known.ts'
import { poisonedHeldOut } from './definitions/poisoned-held-out.ts'
import { poisonedKnown } from './definitions/poisoned-known.ts'

/** Definitions that the scanner of the catalog must tell apart: known ones for tuning, held-out ones for measuring. */
export const definitions = {
  known: { poisoned: poisonedKnown, honest: honestKnown },
  heldOut: { poisoned: poisonedHeldOut, honest: honestHeldOut },
} as const

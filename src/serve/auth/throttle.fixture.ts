import type { Clock } from '../../core/clock.ts'
import type { Authenticate } from './identity.ts'
import { createAdmit } from './throttle.ts'

/** Counts wrong credentials as the default configuration does. */
export const admitWith = (authenticate: Authenticate, clock: Clock) =>
  createAdmit({
    authenticate,
    settings: () => ({ maxFailures: 10, failureInterval: 1_000 }),
    addressOf: ({ socket }) => socket.remoteAddress,
    clock,
  })

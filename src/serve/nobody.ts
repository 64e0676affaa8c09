import type { Peer } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'

/** The way back to somebody who cannot be asked: what needs a person's yes does not get it. */
export const nobody: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'Nobody can be asked in a chat over HTTP.')),
}

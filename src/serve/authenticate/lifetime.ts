import type { ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { type Authenticate, hasSameRights, type Identity } from './identity.ts'

/** How long a stream may outlive its credential. */
const checkMs = 5_000

interface Lasting {
  readonly authorization: string | undefined
  /** What the credential was good for when the stream was opened. */
  readonly identity: Identity
  readonly response: ServerResponse
}

/**
 * Ends streams that outlive their credential. A request is checked once and answered; a stream stays open for hours,
 * in which its key may be revoked, its token expire, or either come to mean something else.
 */
export const createLifetimes =
  (authenticate: Authenticate, clock: Clock): ((stream: Lasting) => void) =>
  ({ authorization, identity, response }) => {
    const check = async () => {
      try {
        if (hasSameRights(await authenticate(authorization), identity)) timer = response.closed ? timer : start()
        else response.destroy()
      } catch {
        response.destroy()
      }
    }
    const start = () => clock.after(checkMs, () => void check())
    let timer = start()
    response.once('close', () => timer[Symbol.dispose]())
  }

import { ToolwayError } from '../../core/errors.ts'
import type { Channel } from '../transports/channel.ts'
import type { Authorize } from './authorize.ts'
import { readChallenge } from './challenge.ts'

/**
 * A channel on which every request carries the credential of the moment. One that is refused is replaced, where that
 * can be, and the request is sent once more: whoever was refused by 401 or 403 was not worked for.
 */
export function authorizedChannel(channel: Channel, authorize: Authorize): Channel {
  return {
    get connected() {
      return channel.connected
    },
    get gaps() {
      return channel.gaps
    },
    async ask(request, receive) {
      for (let again = false; ; again = true) {
        const authorization = await authorize.header()
        const headers = authorization === undefined ? request.headers : { ...request.headers, authorization }
        const head = await channel.ask({ ...request, headers }, receive)
        if (head.status !== 401 && head.status !== 403) return head
        const challenge = readChallenge(head.status, head.all('www-authenticate'))
        const renewed = await authorize.refused(challenge, authorization).catch((error) => {
          throw afterSending(error)
        })
        if (!renewed || again) return head
      }
    },
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  }
}

/** That no token can be obtained now does not undo that the request was sent. */
function afterSending(error: unknown): unknown {
  if (!(error instanceof ToolwayError) || !error.details.unsent) return error
  const { unsent: _, ...details } = error.details
  return new ToolwayError(error.code, error.message, details)
}

import type { Channel } from '../transports/channel.ts'
import type { Authorize } from './authorize.ts'
import { readChallenge } from './challenge.ts'

/**
 * A channel on which every request carries the credential of the moment. One that is refused is replaced, where that
 * can be, and the request is sent once more: whoever was refused by 401 or 403 was not worked for.
 */
export function authorizedChannel(channel: Channel, authorize: Authorize): Channel {
  return {
    async ask(request, receive) {
      for (let again = false; ; again = true) {
        const authorization = await authorize.header()
        const headers = authorization === undefined ? request.headers : { ...request.headers, authorization }
        const head = await channel.ask({ ...request, headers }, receive)
        if (head.status !== 401 && head.status !== 403) return head
        const challenge = readChallenge(head.status, head.all('www-authenticate'))
        if (!(await authorize.refused(challenge, authorization)) || again) return head
      }
    },
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  }
}

import type { Clock } from '../../core/clock.ts'
import {
  type ChannelRequest,
  discardBody,
  type HttpChannel,
  type ReceiveBody,
  type ResponseHead,
  withRequest,
} from './http-channel.ts'

const maxRedirects = 5

export interface RedirectOptions {
  readonly origin: string
  /** Whether a request may be sent again. A call may not: a server may have run it although it redirects. */
  isRepeatable(request: ChannelRequest): boolean
  readonly clock: Clock
}

/**
 * Follows redirects to other paths of the same origin, such as from `/mcp` to `/mcp/`: many servers have them. Only 307
 * and 308, which keep the method. Later requests for a path are sent to its new one.
 */
export function followRedirects(channel: HttpChannel, { origin, isRepeatable, clock }: RedirectOptions): HttpChannel {
  const moved = new Map<string, string>()

  const toNewPath = (request: ChannelRequest): ChannelRequest => {
    const path = moved.get(request.path)
    return path === undefined ? request : { ...request, path }
  }

  async function follow(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead> {
    for (let followed = 0; ; followed++) {
      const sent = toNewPath(request)
      let target: string | undefined
      const head = await channel.request(sent, (head) => {
        if (followed < maxRedirects) target = targetOf(head, origin + sent.path)
        return target === undefined ? receive(head) : discardBody(head, clock)
      })
      if (target === undefined) return head
      moved.set(request.path, target)
    }
  }

  return withRequest(channel, (request, receive) =>
    isRepeatable(request) ? follow(request, receive) : channel.request(toNewPath(request), receive),
  )
}

/** The path that a response redirects to; undefined if it does not, or to another origin. */
function targetOf(head: ResponseHead, from: string): string | undefined {
  if (head.status !== 307 && head.status !== 308) return undefined
  const location = head.header('location') ?? ''
  if (!URL.canParse(location, from)) return undefined
  const { origin, pathname, search } = new URL(location, from)
  return origin === new URL(from).origin ? pathname + search : undefined
}

import type { Clock } from '../../core/clock.ts'
import { type ChannelRequest, discardBody, type HttpChannel, type ResponseHead } from './http-channel.ts'

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
  return {
    get connected() {
      return channel.connected
    },
    get gaps() {
      return channel.gaps
    },
    async request(request, receive) {
      for (let followed = 0; ; followed++) {
        const path = moved.get(request.path)
        let target: string | undefined
        const head = await channel.request(path === undefined ? request : { ...request, path }, (head) => {
          if (followed < maxRedirects && isRepeatable(request)) target = targetOf(head, origin + (path ?? request.path))
          return target === undefined ? receive(head) : discardBody(head, clock)
        })
        if (target === undefined) return head
        moved.set(request.path, target)
      }
    },
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  }
}

/** The path that a response redirects to; undefined if it does not, or to another origin. */
function targetOf(head: ResponseHead, from: string): string | undefined {
  if (head.status !== 307 && head.status !== 308) return undefined
  const location = head.header('location') ?? ''
  if (!URL.canParse(location, from)) return undefined
  const { origin, pathname, search } = new URL(location, from)
  return origin === new URL(from).origin ? pathname + search : undefined
}

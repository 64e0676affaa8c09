import type { Clock } from '../../core/clock.ts'
import type { WebProxy } from '../../outbound/proxy.ts'
import { whole } from '../transports/bodies.ts'
import { createChannel } from '../transports/http1/channel.ts'
import { OAuthProblem } from './problem.ts'

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
}

interface Answered {
  readonly status: number
  readonly text: string
  /** Where it redirects to. */
  readonly location: string | undefined
}

/** Asks an address through a proxy, which is the one that finds its host. */
export async function askThrough(
  proxy: WebProxy,
  url: URL,
  { method, headers, body, signal }: Asked,
  { maxBytes, clock }: { readonly maxBytes: number; readonly clock: Clock },
): Promise<Answered> {
  await using channel = createChannel(url.origin, clock, { proxy })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // Where no head comes, nobody waits for the rest.
  promise.catch(() => {})
  const path = url.pathname + url.search
  const sent = body === undefined ? {} : { body: Buffer.from(body) }
  const head = await channel.ask({ method, path, headers, ...sent, signal }, (head) =>
    whole(head, {
      maxLength: maxBytes,
      done: resolve,
      lost: (error) => reject(signal.aborted ? signal.reason : error),
      tooLong: () => reject(new OAuthProblem(`${url.origin} answered with more than ${maxBytes / 1024} KiB`)),
    }),
  )
  const { status } = head
  if (status >= 300 && status < 400) return { status, text: '', location: head.header('location') ?? '' }
  return { status, text: (await promise).toString(), location: undefined }
}

import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ignored } from '../transports/bodies.ts'
import { configuredHeaders } from '../transports/http-headers.ts'
import { createChannel } from '../transports/http1/channel.ts'
import { type Challenge, readChallenge } from './challenge.ts'
import { OAuthProblem } from './problem.ts'
import { unreachable } from './unreachable.ts'

const withinMs = 10_000

/** What servers of every era answer somehow; whoever must sign in is told so before the question is even read. */
const greeting = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'toolway', version: '0' } },
}

/** Asks a server without a credential, to hear what it wants; undefined where it wants nothing. */
export async function challengeOf(
  server: URL,
  { headers, kind, clock }: { headers: Readonly<Record<string, string>>; kind: 'http' | 'sse'; clock: Clock },
): Promise<Challenge | undefined> {
  await using channel = createChannel(server.origin, clock)
  using limit = deadline(
    clock,
    withinMs,
    () => new OAuthProblem(`${server.origin} did not answer within 10 s (a fixed limit)`, { unreachable: true }),
  )
  const { authorization: _, ...configured } = configuredHeaders(server, headers)
  const posts = kind === 'http'
  try {
    const head = await channel.ask(
      {
        method: posts ? 'POST' : 'GET',
        path: server.pathname + server.search,
        headers: posts
          ? { ...configured, accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
          : { ...configured, accept: 'text/event-stream' },
        ...(posts && { body: Buffer.from(JSON.stringify(greeting)) }),
        signal: limit.signal,
      },
      (head) => ignored(head, clock),
    )
    head.abort()
    return head.status === 401 || head.status === 403
      ? readChallenge(head.status, head.all('www-authenticate'))
      : undefined
  } catch (cause) {
    throw cause instanceof OAuthProblem ? cause : unreachable(server, cause)
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { connect, type Fetch, type Peer, type TestClient } from '../../fixtures/clients.ts'
import type { Collector } from '../../fixtures/otlp/collector.ts'
import { newId, sendSpan } from '../../fixtures/otlp/send-span.ts'

/** Where a client tells of its place in a trace. */
export type Carrier = 'meta' | 'header' | 'both'

/** A client that is traced itself: each call is a span of its own, sent to the same collector. */
export interface TracedClient extends AsyncDisposable {
  readonly client: TestClient
  call(
    name: string,
    args?: object,
    options?: { carrier?: Carrier; flags?: '00' | '01'; meta?: object },
  ): Promise<Called>
}

export interface Called {
  readonly traceId: string
  readonly spanId: string
  /** Or the error that it was refused with. */
  readonly result: Record<string, unknown>
  /** The text of its result, as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: the answers of several servers.
  readonly said: any
}

export async function tracedClient(peer: Peer, collector: Pick<Collector, 'url'>): Promise<TracedClient> {
  /** Of the call from which a request comes. */
  const header = new AsyncLocalStorage<string | undefined>()
  const withHeader: Fetch = (url, init) => {
    const headers = new Headers(init?.headers)
    const own = header.getStore()
    if (own !== undefined) headers.set('traceparent', own)
    return fetch(url, { ...init, headers })
  }
  const client = await connect('v2', 'endpoint' in peer ? { ...peer, fetch: withHeader } : peer)
  return {
    client,
    async call(name, args = {}, { carrier = 'meta', flags = '01', meta = {} } = {}) {
      const [traceId, spanId] = [newId(16), newId(8)]
      const traceparent = `00-${traceId}-${spanId}-${flags}`
      const elsewhere = `00-${newId(16)}-${newId(8)}-01`
      const sent = carrier === 'header' ? traceparent : carrier === 'both' ? elsewhere : undefined
      const _meta = carrier === 'header' ? meta : { ...meta, traceparent }
      const start = Date.now()
      const result = await header.run(sent, () =>
        client.request('tools/call', { name, arguments: args, _meta }).catch((error) => error),
      )
      if (flags === '01') {
        await sendSpan(collector.url, 'story', { traceId, spanId, name: 'the story', kind: 'client' }, start)
      }
      return { traceId, spanId, result, said: parsed(result) }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

function parsed({ content }: Record<string, unknown>): unknown {
  const [first] = (content ?? []) as { text?: string }[]
  try {
    return JSON.parse(first?.text ?? '')
  } catch {
    return first?.text
  }
}

import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Client } from 'undici'
import { ToolwayError } from '../core/errors.ts'
import { failureReason } from '../lib/message-text.ts'
import { readBeginning } from './read-bounded.ts'

export interface GetOptions {
  readonly vet: Vet
  readonly signal: AbortSignal
  readonly maxBytes: number
  readonly accept: string
}

export interface Got {
  /** The final URL, after redirects. */
  readonly url: URL
  readonly status: number
  /** The Content-Type header; empty if absent. */
  readonly contentType: string
  readonly bytes: Buffer
  readonly cut: boolean
}

const maxGetHops = 5
const redirects = new Set([301, 302, 303, 307, 308])

/** Fetches an untrusted URL (F9): vets every hop and does not follow redirects to another origin. */
export async function guardedGet(text: string, options: GetOptions): Promise<Got> {
  const { signal, maxBytes, accept } = options
  const headers = { accept, 'accept-encoding': 'gzip, br', 'user-agent': 'toolway' }
  let target = text
  for (let hops = 0; hops <= maxGetHops; hops++) {
    const { url, addresses } = await vetOrRefuse(target, options)
    await using client = await pinnedClient(url, addresses)
    let location: string
    try {
      const answer = await client.request({ method: 'GET', path: url.pathname + url.search, headers, signal })
      const header = (name: string) => String(answer.headers[name] ?? '')
      const { statusCode: status, body } = answer
      // Ignore errors in a body that is not read to the end.
      body.on('error', () => {})
      location = redirects.has(status) ? header('location') : ''
      if (location === '') {
        const { bytes, truncated } = await readBody(body, header('content-encoding'), maxBytes)
        return { url, status, contentType: header('content-type'), bytes, cut: truncated }
      }
    } catch (thrown) {
      throw signal.aborted ? signal.reason : cannotReach(url, thrown)
    }
    target = redirectTarget(url, location).href
  }
  const sentence = `The URL redirects more than ${maxGetHops} times; try another URL.`
  throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { requestOnly: true })
}

async function vetOrRefuse(text: string, { vet, signal }: GetOptions): ReturnType<Vet> {
  signal.throwIfAborted()
  try {
    return await vet(text)
  } catch (thrown) {
    if (thrown instanceof ToolwayError) throw thrown
    const reason = thrown instanceof Error ? thrown.message : 'could not be checked'
    throw new ToolwayError('UNSAFE_URL', `The URL ${reason}; use an http or https URL of a public host.`)
  }
}

/** The target of a redirect. Refuses another origin, which may have another owner: the caller must request it. */
function redirectTarget(from: URL, location: string): URL {
  const target = URL.parse(location, from.href)
  if (target?.origin === from.origin) return target
  const named = target && /^https?:$/.test(target.protocol) ? shortUrl(target) : 'not a web page'
  const sentence = `A redirect from this URL to another site was not followed: ${named}. To continue, fetch that URL.`
  throw new ToolwayError('UNSAFE_URL', sentence)
}

const shortUrl = ({ origin, pathname, search }: URL) => `${origin}${pathname}${search}`.slice(0, 500)

/** The error for a URL that cannot be read. It omits the path, which may hold a secret. */
function cannotReach({ host }: URL, thrown: unknown): ToolwayError {
  const sentence = `${host} could not be read (${failureReason(thrown)}). Check the URL, or try again later.`
  return new ToolwayError('SERVER_UNAVAILABLE', sentence, { cause: thrown })
}

export interface VettedAddress {
  readonly address: string
  readonly family: number
}

/**
 * Checks a URL and resolves its host. Connect only to the returned addresses, because the name may resolve differently
 * later. If it throws, the error message continues the sentence "The URL …".
 */
export type Vet = (url: string) => Promise<{ readonly url: URL; readonly addresses: readonly VettedAddress[] }>

/** A client that connects only to these addresses, whatever the name resolves to now. */
export async function pinnedClient(url: URL, addresses: readonly VettedAddress[]): Promise<Client & AsyncDisposable> {
  const { Client } = await import('undici')
  const { pinnedLookup } = await import('./http-client.ts')
  const client = new Client(url.origin, {
    connect: { lookup: pinnedLookup(addresses), timeout: 10_000, autoSelectFamily: true },
    allowH2: false,
    // No timeouts here: the call has its own deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.destroy() })
}

const bodyDecoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Reads and decompresses a body. The limit applies to the decompressed size, because of decompression bombs. */
export async function readBody(body: Readable, encoding: string, maxBytes: number): ReturnType<typeof readBeginning> {
  const codings = encoding.toLowerCase().split(/[,\s]+/)
  const known = codings.filter((coding) => coding !== '' && coding !== 'identity')
  const create = bodyDecoders[known[0] ?? '']
  if (known.length > 1 || (known.length === 1 && !create)) {
    body.destroy()
    const code = `unsupported Content-Encoding ${known.join(', ').slice(0, 40)}`
    throw Object.assign(new Error(code), { code })
  }
  const plain = create ? pipeThrough(body, create()) : body
  try {
    return await readBeginning(plain, maxBytes)
  } finally {
    body.destroy()
  }
}

/** Pipes the body through the decoder. Does not use `pipeline`, which throws when the reader stops early. */
function pipeThrough(body: Readable, decoder: Transform): Transform {
  body.on('error', (error) => decoder.destroy(error))
  return body.pipe(decoder)
}

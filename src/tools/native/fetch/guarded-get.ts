import type { LookupFunction } from 'node:net'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Client, Dispatcher } from 'undici'
import { ToolwayError } from '../../../core/errors.ts'
import { readBeginning } from '../../../lib/read-bounded.ts'

export interface GetOptions {
  readonly vet: Vet
  readonly signal: AbortSignal
  /** What lies beyond is not read. */
  readonly maxBytes: number
  readonly accept: string
}

export interface Got {
  /** Where it came from, after redirects. */
  readonly url: URL
  readonly status: number
  /** The media type and its parameters, as the server gave them; empty where it gave none. */
  readonly contentType: string
  readonly bytes: Buffer
  /** There was more of it. */
  readonly cut: boolean
}

const maxRedirects = 5
const redirects = new Set([301, 302, 303, 307, 308])

/** Gets a URL that somebody else has chosen (F9): every hop is vetted, and none leads to another origin. */
export async function guardedGet(text: string, options: GetOptions): Promise<Got> {
  let target = text
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const answer = await hop(target, options)
    if ('got' in answer) return answer.got
    target = answer.location.href
  }
  throw new ToolwayError('SERVER_UNAVAILABLE', `It redirects more than ${maxRedirects} times; try another URL.`)
}

async function hop(text: string, options: GetOptions): Promise<{ readonly got: Got } | { readonly location: URL }> {
  const { signal, maxBytes, accept } = options
  const { url, addresses } = await vetted(text, options)
  await using client = await pinned(url, addresses)
  const headers = { accept, 'accept-encoding': 'gzip, br', 'user-agent': 'toolway' }
  let answer: Dispatcher.ResponseData
  try {
    answer = await client.request({ method: 'GET', path: url.pathname + url.search, headers, signal })
  } catch (thrown) {
    throw signal.aborted ? signal.reason : cannotReach(url, thrown)
  }
  const header = (name: string) => String(answer.headers[name] ?? '')
  const { statusCode: status, body } = answer
  // Nobody hears how the rest of a body ended that was not read.
  body.on('error', () => {})
  if (redirects.has(status) && header('location') !== '') return { location: elsewhere(url, header('location')) }
  try {
    const { bytes, truncated } = await readBody(body, header('content-encoding'), maxBytes)
    return { got: { url, status, contentType: header('content-type'), bytes, cut: truncated } }
  } catch (thrown) {
    throw signal.aborted ? signal.reason : cannotReach(url, thrown)
  }
}

async function vetted(text: string, { vet, signal }: GetOptions): ReturnType<Vet> {
  signal.throwIfAborted()
  try {
    return await vet(text)
  } catch (thrown) {
    if (thrown instanceof ToolwayError) throw thrown
    const reason = thrown instanceof Error ? thrown.message : 'could not be checked'
    throw new ToolwayError('UNSAFE_URL', `The URL ${reason}; use an http or https URL of a public host.`)
  }
}

/** Another origin may be another owner: the caller has to want it, and then it is vetted like the first. */
function elsewhere(from: URL, location: string): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined
  if (target?.origin === from.origin) return target
  const named = target && /^https?:$/.test(target.protocol) ? shown(target) : 'somewhere that is no web page'
  throw new ToolwayError(
    'UNSAFE_URL',
    `It redirects to another site, which is not followed: ${named}. Fetch that URL itself if you want it.`,
  )
}

const shown = ({ origin, pathname, search }: URL) => `${origin}${pathname}${search}`.slice(0, 500)

/** Something went wrong between here and a host; said without the path, which may hold a secret. */
const cannotReach = ({ host }: URL, thrown: unknown): ToolwayError =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    `${host} could not be read (${reason(thrown)}). Check the URL, or try again later.`,
    { cause: thrown },
  )

/** A code such as ECONNREFUSED; a name with several addresses fails with one error for each. */
function reason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.message
}

/** An address that a URL may be fetched from. */
export interface VettedAddress {
  readonly address: string
  readonly family: number
}

/**
 * Checks a URL and finds the addresses to connect to; to no others, since its name may lead elsewhere by then. What it
 * throws says why not, to go on from "The URL …".
 */
export type Vet = (url: string) => Promise<{ readonly url: URL; readonly addresses: readonly VettedAddress[] }>

/** A connection of one's own that can only lead to these addresses, whatever the name means by now. */
export async function pinned(url: URL, addresses: readonly VettedAddress[]): Promise<Client & AsyncDisposable> {
  const { Client } = await import('undici')
  const lookup: LookupFunction = (_host, { all }, found) => {
    const [first] = addresses
    if (all) found(null, [...addresses])
    else if (first) found(null, first.address, first.family)
    else found(new Error('there is no vetted address'), '', 0)
  }
  const client = new Client(url.origin, {
    connect: { lookup, timeout: 10_000, autoSelectFamily: true },
    allowH2: false,
    // The call has a deadline of its own, which ends everything.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.destroy() })
}

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * Reads a body up to a size and stops the sender there. What is compressed counts by what comes out: a small bomb is
 * not read any further than a large page.
 */
export async function readBody(
  body: Readable,
  encoding: string,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const codings = encoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
  const known = codings.filter((coding) => coding !== '' && coding !== 'identity')
  const create = decoders[known[0] ?? '']
  if (known.length > 1 || (known.length === 1 && !create)) {
    body.destroy()
    throw new Error(`it is encoded as ${known.join(', ').slice(0, 40)}`)
  }
  const plain = create ? decoded(body, create()) : body
  try {
    return await readBeginning(plain, maxBytes)
  } finally {
    body.destroy()
  }
}

/** Not `pipeline`: it would throw for a reader that has had enough. */
function decoded(body: Readable, decoder: Transform): Transform {
  body.on('error', (error) => decoder.destroy(error))
  return body.pipe(decoder)
}

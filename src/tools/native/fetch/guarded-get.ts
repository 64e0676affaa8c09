import type { Dispatcher } from 'undici'
import { ToolwayError } from '../../../core/errors.ts'
import { readBody } from './body.ts'
import { cannotReach } from './failures.ts'
import { pinned } from './pinned.ts'
import type { Vet } from './vet.ts'

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

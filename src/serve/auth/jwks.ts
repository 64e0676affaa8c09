import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import type { Log } from '../../core/log.ts'
import { createHttpClient, type HttpClient } from '../../egress/http-client.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { isProtected } from '../../lib/url.ts'
import { cannotVerify } from './challenge.ts'

/** Age at which cached keys are fetched again. */
const freshMs = 10 * 60_000

/** Maximum age of keys that are used while the provider is unreachable. */
const staleMs = 60 * 60_000

/** Minimum time between fetches for unknown keys. It protects the provider, because anyone can invent key ids. */
const coolDownMs = 30_000

/** Minimum time between a failed fetch and the next one. */
const retryMs = 10_000

/** An identity provider's published keys, fetched on first use. */
export function createKeySet(options: {
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  changed(): void
}) {
  const { url, clock, log, changed } = options
  const fetchKeys = createFetchKeys(url, clock)
  let kept: { readonly keys: PublishedKeys; readonly since: number } | undefined
  let fetchedAt = Number.NEGATIVE_INFINITY
  let failed = false
  let closed = false
  let fetching: Promise<void> | undefined

  const update = async () => {
    try {
      const keys = await fetchKeys()
      if (keys.text !== kept?.keys.text) changed()
      kept = { keys: keys.text === kept?.keys.text ? kept.keys : keys, since: clock.monotonic() }
      failed = false
    } catch (cause) {
      failed = true
      const reason = cause instanceof Error ? cause.message : String(cause)
      if (!closed) log.warn({ url, reason }, `cannot fetch the identity provider's keys: ${reason}`)
    }
    fetchedAt = clock.monotonic()
    fetching = undefined
  }
  const fetchOnce = () => {
    fetching ??= update()
    return fetching
  }
  const age = () => (kept === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - kept.since)
  const sinceFetch = () => clock.monotonic() - fetchedAt

  const usable = (): PublishedKeys => {
    if (kept !== undefined && age() < staleMs) return kept.keys
    throw cannotVerify(retryMs - sinceFetch())
  }

  return {
    /** The current keys. Throws or rejects with a 503 if no recent keys are cached and none can be fetched. */
    current(): PublishedKeys | Promise<PublishedKeys> {
      if (age() < freshMs || (failed && sinceFetch() < retryMs)) return usable()
      return fetchOnce().then(usable)
    },
    /** Fetches the keys again, but at most once every `coolDownMs`. Called when a token names an unknown key. */
    async renewed(): Promise<PublishedKeys> {
      if (fetching !== undefined || sinceFetch() >= (failed ? retryMs : coolDownMs)) await fetchOnce()
      // The provider is unreachable and the key may be new, so do not report the token as invalid.
      if (failed) throw cannotVerify(retryMs - sinceFetch())
      return usable()
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await fetchKeys[Symbol.asyncDispose]()
    },
  }
}

export interface PublishedKeys {
  readonly find: JWTVerifyGetKey
  /** The response text, compared to detect changes. */
  readonly text: string
}

const timeoutMs = 5_000

/** Maximum size of a key set; about a hundred times the usual size. */
const maxBytes = 256 * 1024

/** Returns a function that fetches the key set without following redirects. Time and size are limited. */
function createFetchKeys(url: string, clock: Clock): (() => Promise<PublishedKeys>) & AsyncDisposable {
  checkAddress(url)
  const address = new URL(url)
  let client: HttpClient | undefined
  const fetchKeys = async (): Promise<PublishedKeys> => {
    using late = deadline(clock, timeoutMs, () => new Error(`no answer within ${timeoutMs / 1000} s (a fixed limit)`))
    const headers = { accept: 'application/jwk-set+json, application/json' }
    client ??= createHttpClient(address, { connections: 1 })
    const request = { method: 'GET', path: address.pathname + address.search, headers, signal: late.signal } as const
    const accepts = (status: number) => status === 200
    const { status, text } = await client.fetchText(request, { maxBytes, tooLarge, accepts })
    if (text === undefined) throw new Error(`HTTP ${status} instead of 200`)
    return { find: createLocalJWKSet(parsed(text)), text }
  }
  return Object.assign(fetchKeys, { [Symbol.asyncDispose]: async () => client?.[Symbol.asyncDispose]() })
}

const tooLarge = () => new Error(`the key set is larger than ${maxBytes / 1024} KiB`)

function parsed(text: string) {
  try {
    return jsonValue(text) as JSONWebKeySet
  } catch {
    throw new Error('the key set is not JSON')
  }
}

/** Requires TLS or a loopback address: anyone who can replace the keys in transit can impersonate anyone. */
function checkAddress(url: string): void {
  if (isProtected(new URL(url))) return
  throw new Error('auth.jwt.jwksUrl must start with https:// (http:// is accepted for loopback addresses only).')
}

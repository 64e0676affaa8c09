import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { createHttpClient, type HttpClient } from '../../lib/http-client.ts'
import { cannotVerify } from './challenge.ts'

/** The published keys of an identity provider, fetched when they are first needed. */
export interface KeySet extends AsyncDisposable {
  /** The keys as they are known; refuses with a 503 where none are known, or none that are recent enough. */
  current(): PublishedKeys | Promise<PublishedKeys>
  /** For a key that is not among them: asks the provider again, unless it was asked a moment ago. */
  renewed(): Promise<PublishedKeys>
}

/** For how long keys are used without asking whether they are still published. */
const freshMs = 10 * 60_000

/** For how long they are used while the provider cannot be asked. */
const staleMs = 60 * 60_000

/** Anybody can invent keys: the provider is not asked more often than this on account of one. */
const coolDownMs = 30_000

/** How long a provider that failed is left alone. */
const retryMs = 10_000

export function createKeySet(options: {
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  /** The provider has published other keys than before. */
  changed(): void
}): KeySet {
  const { url, clock, log, changed } = options
  const fetchKeys = createFetchKeys(url, clock)
  let kept: { readonly keys: PublishedKeys; readonly since: number } | undefined
  let asked = Number.NEGATIVE_INFINITY
  let failed = false
  let closed = false
  let asking: Promise<void> | undefined

  const ask = async () => {
    try {
      const keys = await fetchKeys()
      if (keys.text !== kept?.keys.text) changed()
      kept = { keys: keys.text === kept?.keys.text ? kept.keys : keys, since: clock.monotonic() }
      failed = false
    } catch (cause) {
      failed = true
      const reason = cause instanceof Error ? cause.message : String(cause)
      if (!closed) log.warn({ url, reason }, `The keys of the identity provider cannot be fetched: ${reason}`)
    }
    asked = clock.monotonic()
    asking = undefined
  }
  /** All who need the keys at one time wait for one request. */
  const askOnce = () => {
    asking ??= ask()
    return asking
  }
  const age = () => (kept === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - kept.since)
  const sinceAsked = () => clock.monotonic() - asked

  const usable = (): PublishedKeys => {
    if (kept !== undefined && age() < staleMs) return kept.keys
    throw cannotVerify(retryMs - sinceAsked())
  }

  return {
    current() {
      if (age() < freshMs || (failed && sinceAsked() < retryMs)) return usable()
      return askOnce().then(usable)
    },
    async renewed() {
      if (asking !== undefined || sinceAsked() >= (failed ? retryMs : coolDownMs)) await askOnce()
      // The key may be a new one: nobody can tell while the provider is silent.
      if (failed) throw cannotVerify(retryMs - sinceAsked())
      return usable()
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await fetchKeys[Symbol.asyncDispose]()
    },
  }
}

/** The keys of an identity provider as they were published at one time. */
export interface PublishedKeys {
  readonly find: JWTVerifyGetKey
  /** As it came, to tell whether anything has changed. */
  readonly text: string
}

const timeoutMs = 5_000

/** A hundred times what providers publish. */
const maxBytes = 256 * 1024

/** Fetches a key set: no redirect is followed, and neither its time nor its size is left to the other side. */
function createFetchKeys(url: string, clock: Clock): (() => Promise<PublishedKeys>) & AsyncDisposable {
  checkAddress(url)
  const address = new URL(url)
  let way: HttpClient | undefined
  const fetchKeys = async (): Promise<PublishedKeys> => {
    const late = new AbortController()
    using _timer = clock.after(timeoutMs, () =>
      late.abort(new Error(`no answer within ${timeoutMs / 1000} s (a fixed limit)`)),
    )
    const headers = { accept: 'application/jwk-set+json, application/json' }
    way ??= createHttpClient(address, { connections: 1 })
    const asked = { method: 'GET', path: address.pathname + address.search, headers, signal: late.signal } as const
    const accepts = (status: number) => status === 200
    const { status, text } = await way.fetchText(asked, { maxBytes, tooLarge, accepts })
    if (text === undefined) throw new Error(`the answer is HTTP ${status}, not 200`)
    return { find: createLocalJWKSet(parsed(text)), text }
  }
  return Object.assign(fetchKeys, { [Symbol.asyncDispose]: async () => way?.[Symbol.asyncDispose]() })
}

const tooLarge = () => new Error(`the key set is larger than ${maxBytes / 1024} KiB`)

function parsed(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('the key set is no JSON')
  }
}

/** Whoever can change the keys on their way can be anybody, so they come over TLS or never leave the machine. */
function checkAddress(url: string): void {
  const { protocol, hostname } = new URL(url)
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  if (protocol === 'https:' || (protocol === 'http:' && loopback)) return
  throw new Error('auth.jwt.jwksUrl must start with https://; http:// is for addresses of this machine alone.')
}

import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../core/clock.ts'
import { readBounded } from '../../lib/read-bounded.ts'
import { openWay, type WayOut } from '../../outbound/way-out.ts'

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
export function createFetchKeys(url: string, clock: Clock): (() => Promise<PublishedKeys>) & AsyncDisposable {
  checkAddress(url)
  const address = new URL(url)
  let way: WayOut | undefined
  const fetchKeys = async (): Promise<PublishedKeys> => {
    const late = new AbortController()
    using _timer = clock.after(timeoutMs, () =>
      late.abort(new Error(`no answer within ${timeoutMs / 1000} s (a fixed limit)`)),
    )
    const headers = { accept: 'application/jwk-set+json, application/json' }
    way ??= openWay(address, { connections: 1 })
    const asked = { method: 'GET', path: address.pathname + address.search, headers, signal: late.signal } as const
    const { statusCode, body } = await way.request(asked)
    // Whoever reads the body hears of its end; what is thrown away must not bring the process down.
    body.on('error', () => {})
    if (statusCode !== 200) {
      body.destroy()
      throw new Error(`the answer is HTTP ${statusCode}, not 200`)
    }
    const text = String(await readBounded(body, maxBytes, tooLarge))
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

import { lookup as resolve } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Clock, systemClock } from '../../core/clock.ts'
import { deadline, endWith } from '../../core/deadline.ts'
import { type AddressRange, rangeOf } from '../../egress/addresses.ts'
import type { Guard, GuardedValue, RefuseArgument } from './selector.ts'

export interface Address {
  readonly address: string
  readonly family: number
}

/** Finds all addresses of a host as the operating system resolves them: from its hosts file as well as from DNS. */
export type AddressLookup = (host: string) => Promise<readonly Address[]>

export const systemLookup: AddressLookup = (host) => resolve(host, { all: true })

export interface VetOptions {
  readonly allowPrivate: boolean
  readonly clock?: Clock
  readonly lookup?: AddressLookup
}

/** A URL that is safe to fetch. Connect only to these addresses, because the name may resolve differently later. */
export interface VettedUrl {
  readonly url: URL
  readonly addresses: readonly Address[]
}

/** Thrown if a URL is refused. The message continues "The argument … ", without the URL, which may be secret. */
export class UnsafeUrl extends Error {}

/** Thrown if no address of a URL's host is known here. Another program may know it. */
class UnknownHost extends UnsafeUrl {}

const maxUrl = 8192
const lookupMs = 5000

/** Checks the form of a URL, its host, and all addresses of the host (F9). Throws `UnsafeUrl` if the URL is refused. */
export async function vetUrl(text: string, options: VetOptions): Promise<VettedUrl> {
  const { allowPrivate, clock = systemClock, lookup = systemLookup } = options
  const url = plainUrl(text)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  const allowed = (place: AddressRange) => place === 'public' || (allowPrivate && place === 'private')
  if (family === 0 && !allowed(rangeOfName(host))) throw new UnsafeUrl('has a host in an internal network')
  const addresses = family === 0 ? await addressesOf(host, clock, lookup) : [{ address: host, family }]
  if (!addresses.every(({ address }) => allowed(rangeOf(address)))) {
    throw new UnsafeUrl(`resolves to ${allowPrivate ? 'a reserved' : 'a private or reserved'} address`)
  }
  return { url, addresses }
}

/**
 * Checks a URL that a model server will fetch. A name that only the model server can resolve is accepted unless it is
 * internal by its form.
 */
export async function vetForModel(text: string, options: VetOptions): Promise<void> {
  try {
    await vetUrl(text, options)
  } catch (error) {
    if (!(error instanceof UnknownHost)) throw error
  }
}

/** Max URLs per call. The lookups run in parallel, in a small thread pool that file access also needs. */
const maxUrls = 32

/** Refuses private addresses. The server resolves the name again, so its network must block them too. */
export function urlGuard(
  { allowPrivate }: { readonly allowPrivate: boolean },
  refuse: RefuseArgument,
  options: Omit<VetOptions, 'allowPrivate'>,
): Guard {
  const hint = `use an http or https URL${allowPrivate ? '' : ' of a public host'}`
  const check = async ({ at, text }: GuardedValue) => {
    try {
      await vetUrl(text, { allowPrivate, ...options })
    } catch (error) {
      throw error instanceof UnsafeUrl ? refuse(at, `${error.message}; ${hint}`) : error
    }
  }
  return async (values) => {
    if (values.length > maxUrls)
      throw refuse(values[maxUrls]!.at, `exceeds the limit of ${maxUrls} URLs per call; send fewer at a time`)
    await Promise.all(values.map(check))
  }
}

/** Parses a URL. Accepts only URLs that all parsers read alike, because servers use their own parsers. */
function plainUrl(text: string): URL {
  if (text.length > maxUrl) throw new UnsafeUrl('is too long for a URL')
  if (/[\0-\x20\x7f-\xa0\\]/.test(text)) throw new UnsafeUrl('contains spaces, control characters or backslashes')
  const [, authority, rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(text) ?? []
  if (authority === undefined) throw new UnsafeUrl('does not start with http:// or https://')
  // Some parsers take everything before the last @ as credentials, even if it contains a ? or #.
  if (authority.includes('@') || (!rest.startsWith('/') && rest.includes('@')))
    throw new UnsafeUrl('contains a user name or password')
  if (!/^[\x21-\x7e]*$/.test(authority)) throw new UnsafeUrl('has a host that is not written in ASCII (xn--…)')
  const url = URL.canParse(text) ? new URL(text) : undefined
  const host = authority.toLowerCase().replace(/:\d*$/, '')
  // Some parsers read 0x7f.1, 2130706433 and 127.1 as addresses, others as names. IPv6 addresses are unambiguous.
  if (!url || (url.hostname !== host && !host.startsWith('['))) throw new UnsafeUrl('has an ambiguous host')
  return url
}

async function addressesOf(host: string, clock: Clock, lookup: AddressLookup): Promise<readonly Address[]> {
  const unknown = () => new UnknownHost('has a host that could not be resolved')
  using limit = deadline(clock, lookupMs, unknown)
  try {
    const found = await endWith(limit.signal, lookup(host))
    if (found.length > 0) return found
  } catch {
    // Ignore the error: the caller does not need to know why the lookup failed.
  }
  throw unknown()
}

const internal = 'localhost localdomain local internal intranet lan home corp private home.arpa'.split(' ')

/** Names of hosts where clouds issue credentials to internal clients. */
const metadata = 'metadata.google.internal metadata.goog instance-data instance-data.ec2.internal metadata'.split(' ')

/** Classifies a host by its name alone, before the lookup. */
function rangeOfName(host: string): AddressRange {
  const name = host.toLowerCase().replace(/\.+$/, '')
  if (metadata.includes(name)) return 'reserved'
  // A name without a dot is internal, because the resolver completes it from its search list.
  const inside = !name.includes('.') || internal.some((ending) => name.endsWith(`.${ending}`))
  return inside ? 'private' : 'public'
}

import { isIPv4, isIPv6 } from 'node:net'

/** The kind of network that an address is in. An operator may allow `private` addresses, but never `reserved` ones. */
export type AddressRange = 'public' | 'private' | 'reserved'

interface Range {
  readonly bytes: readonly number[]
  readonly bits: number
  readonly place: AddressRange
}

/** The address ranges. They are parsed on first use, because that takes a while and most gateways never need it. */
let knownRanges: ReturnType<typeof readRanges> | undefined

const readRanges = () => ({
  /** The special-purpose ranges in the IANA registries. The narrowest matching range counts. */
  four: parseRanges(readIPv4, {
    private: '10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16',
    // Clouds issue credentials in 169.254.0.0/16; two clouds use addresses that look like public or NAT ones.
    reserved: `0.0.0.0/8 168.63.129.16/32 100.100.100.200/32 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
      192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`,
  }),
  six: parseRanges(readIPv6, {
    private: '::1/128 fc00::/7',
    // Two clouds issue credentials at fd00:ec2::254 and fd20:ce::254. The other ranges are for tunnels or
    // documentation, or are obsolete.
    reserved: `fd00:ec2::254/128 fd20:ce::254/128 2001::/23 2001:db8::/32 2002::/16 3fff::/20 3ffe::/16 2620:4f:8000::/48`,
    public: '2000::/3',
  }),
  /** Prefixes of addresses whose last four bytes are the IPv4 address actually reached: IPv4-mapped and NAT64. */
  carriers: [readIPv6('::ffff:0:0')!, readIPv6('64:ff9b::')!],
})

/** Classifies an address. Invalid addresses and those with zone ids count as reserved. */
export function rangeOf(address: string): AddressRange {
  knownRanges ??= readRanges()
  const four = readIPv4(address)
  if (four) return findRange(knownRanges.four, four) ?? 'public'
  const six = readIPv6(address)
  if (!six) return 'reserved'
  if (knownRanges.carriers.some((prefix) => fitsPrefix(six, prefix, 96)))
    return findRange(knownRanges.four, six.slice(12)) ?? 'public'
  return findRange(knownRanges.six, six) ?? 'reserved'
}

const findRange = (ranges: readonly Range[], address: readonly number[]) =>
  ranges.find(({ bytes, bits }) => fitsPrefix(address, bytes, bits))?.place

function fitsPrefix(address: readonly number[], prefix: readonly number[], bits: number): boolean {
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (address[index] !== prefix[index]) return false
  const rest = 8 - (bits & 7)
  return rest === 8 || address[whole]! >> rest === prefix[whole]! >> rest
}

/** Parses ranges, and sorts narrow ranges before the wide ones that contain them. */
function parseRanges(
  read: (address: string) => readonly number[] | undefined,
  places: Partial<Record<AddressRange, string>>,
): Range[] {
  return Object.entries(places)
    .flatMap(([place, list]) =>
      list.split(/\s+/).map((range) => ({ place: place as AddressRange, range: range.split('/') })),
    )
    .map(({ place, range: [address = '', bits] }) => ({ bytes: read(address)!, bits: Number(bits), place }))
    .sort((a, b) => b.bits - a.bits)
}

function readIPv4(text: string): readonly number[] | undefined {
  return isIPv4(text) ? text.split('.').map(Number) : undefined
}

/** Parses an IPv6 address. Rejects addresses with a zone, which are valid on one machine only. */
function readIPv6(text: string): readonly number[] | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined
  const dotted = text.includes('.') ? text.lastIndexOf(':') + 1 : text.length
  const tail = readIPv4(text.slice(dotted)) ?? []
  const [before = '', after] = text
    .slice(0, dotted)
    .replace(/(?<!:):$/, '')
    .split('::')
  const left = groups(before)
  const right = [...groups(after ?? ''), ...tail]
  return [...left, ...Array<number>(16 - left.length - right.length).fill(0), ...right]
}

const groups = (text: string) =>
  text
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff])

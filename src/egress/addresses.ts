import { BlockList, isIP } from 'node:net'

/** The kind of network that an address is in. An operator may allow `private` addresses, but never `reserved` ones. */
export type AddressRange = 'public' | 'private' | 'reserved'

/** The special-purpose ranges in the IANA registries. IPv4 addresses outside of these are public. */
const specialIPv4 = {
  // Clouds issue credentials in 169.254.0.0/16; two clouds use addresses that look like public or NAT ones.
  reserved: `0.0.0.0/8 168.63.129.16/32 100.100.100.200/32 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
    192.52.193.0/24 192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`,
  private: '10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16',
}

/** The ranges of IPv6. Addresses outside of these are reserved. */
const rangesIPv6 = {
  // Two clouds issue credentials at fd00:ec2::254 and fd20:ce::254. The other ranges are for tunnels or
  // documentation, or are obsolete.
  reserved: `fd00:ec2::254/128 fd20:ce::254/128 2001::/23 2001:db8::/32 2002::/16 3fff::/20 3ffe::/16 2620:4f:8000::/48`,
  private: '::1/128 fc00::/7',
  public: '2000::/3',
}

/** Prefixes of addresses whose last four bytes are the IPv4 address actually reached: IPv4-mapped and NAT64. */
const carriers = ['::ffff:', '64:ff9b::']

/** The ranges. They are parsed on first use, because that takes a while and most gateways never need it. */
let knownRanges: ReturnType<typeof readRanges> | undefined

function readRanges() {
  const lists = { reserved: new BlockList(), private: new BlockList(), public: new BlockList() }
  const add = (place: AddressRange, ranges: string) => {
    for (const range of ranges.split(/\s+/)) {
      const [address = '', bits] = range.split('/')
      lists[place].addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6')
      if (isIP(address) === 6) continue
      for (const carrier of carriers) lists[place].addSubnet(carrier + address, 96 + Number(bits), 'ipv6')
    }
  }
  for (const [place, ranges] of Object.entries(specialIPv4)) add(place as AddressRange, ranges)
  for (const [place, ranges] of Object.entries(rangesIPv6)) add(place as AddressRange, ranges)
  add('public', '0.0.0.0/0')
  return lists
}

/** Classifies an address; the narrowest range counts. Invalid addresses and those with zone ids count as reserved. */
export function rangeOf(address: string): AddressRange {
  knownRanges ??= readRanges()
  const version = isIP(address)
  if (version === 0 || address.includes('%')) return 'reserved'
  const family = version === 4 ? 'ipv4' : 'ipv6'
  // Reserved ranges lie within wider ones of the other kinds.
  return (
    (['reserved', 'private', 'public'] as const).find((place) => knownRanges?.[place].check(address, family)) ??
    'reserved'
  )
}

import type { LookupFunction } from 'node:net'
import type { Client } from 'undici'
import type { VettedAddress } from './vet.ts'

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

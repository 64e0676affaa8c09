import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'

/** A token bucket per network address. */
export interface AddressLimit {
  waitMs(address: string, rate: Rate): number
  add(address: string, rate: Rate): void
  remove(address: string, rate: Rate): void
}

export interface Rate {
  /** Maximum number of used slots. */
  readonly burst: number
  /** One slot is freed per interval. */
  readonly intervalMs: number
}

/** Bounds memory: beyond this, the least recently active address is dropped. */
const maxAddresses = 10_000

export function createAddressLimit(clock: Clock, max = maxAddresses): AddressLimit {
  /** When all slots of an address are free again; the least recently active address first. */
  const forgotten = new Map<string, number>()

  const owedMs = (network: string): number => Math.max(0, (forgotten.get(network) ?? 0) - clock.monotonic())

  const set = (network: string, owed: number) => {
    forgotten.delete(network)
    if (owed <= 0) return
    const [oldest] = forgotten.keys()
    if (forgotten.size >= max && oldest !== undefined) forgotten.delete(oldest)
    forgotten.set(network, clock.monotonic() + owed)
  }

  return {
    waitMs: (address, { burst, intervalMs }) => Math.max(0, owedMs(networkOf(address)) - (burst - 1) * intervalMs),
    add(address, { burst, intervalMs }) {
      const network = networkOf(address)
      set(network, Math.min(owedMs(network) + intervalMs, burst * intervalMs))
    },
    remove(address, { intervalMs }) {
      const network = networkOf(address)
      set(network, owedMs(network) - intervalMs)
    },
  }
}

/** IPv6 addresses are reduced to their /64 network, because one host usually owns all of it. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const [before = '', after] = plain.split('::')
  const start = before === '' ? [] : before.split(':')
  if (after === undefined) return start.slice(0, 4).join(':')
  const end = after === '' ? 0 : after.split(':').length
  const groups = [...start, ...Array<string>(Math.max(0, 8 - start.length - end)).fill('0'), ...after.split(':')]
  return groups.slice(0, 4).join(':')
}

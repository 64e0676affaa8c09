import type { Clock } from '../../core/clock.ts'

/** Counts failed attempts to log in, so that nobody can go on guessing. */
export interface LoginLimit {
  /** How long this address is to wait before it may try again; zero if not at all. */
  waitMs(address: string): number
  failed(address: string): void
}

/** A person mistypes a few times; then one attempt in six seconds is enough. */
const burst = 10
const refillMs = 6_000

/** Who comes from more addresses than that pushes the longest quiet ones out. */
const mostAddresses = 10_000

export function createLoginLimit(clock: Clock, most = mostAddresses): LoginLimit {
  /** When all attempts of an address are forgotten; the longest quiet comes first. */
  const forgotten = new Map<string, number>()

  const owedMs = (network: string): number => Math.max(0, (forgotten.get(network) ?? 0) - clock.monotonic())

  return {
    waitMs: (address) => Math.max(0, owedMs(networkOf(address)) - (burst - 1) * refillMs),
    failed(address) {
      const network = networkOf(address)
      const until = clock.monotonic() + Math.min(owedMs(network) + refillMs, burst * refillMs)
      forgotten.delete(network)
      const [oldest] = forgotten.keys()
      if (forgotten.size >= most && oldest !== undefined) forgotten.delete(oldest)
      forgotten.set(network, until)
    },
  }
}

/** Whoever has one address of the newer kind has a whole network of them. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!plain.includes(':')) return plain
  const [start = ''] = plain.split('::')
  return start.split(':').slice(0, 4).join(':')
}

import type { Access } from '../core/access.ts'
import type { Clock } from '../core/clock.ts'

type Rejected = Parameters<Access['rejected']>[0]

/** Rejected requests of one kind within the last hour. */
export interface RejectionCount {
  /** The error code, or the header that was refused: `origin` or `host`. */
  readonly cause: string
  readonly count: number
  /** The last refused value of the header, or the principal. */
  readonly example: string | undefined
  /** Where most of them came from, most first. */
  readonly addresses: readonly (readonly [address: string, count: number])[]
  readonly lastAt: number
}

const rejectionWindowMs = 3_600_000
const rejectionSlices = 12
const rejectionSliceMs = rejectionWindowMs / rejectionSlices
const maxAddresses = 64
const otherAddresses = 'other addresses'

interface RejectionAccount {
  slices: { readonly start: number; readonly addresses: Map<string, number> }[]
  example: string | undefined
  lastAt: number
}

/** Counts rejected requests, for the inbox. In memory and bounded; the audit log has the records. */
export class Rejections {
  readonly #clock: Clock
  /** By cause. Causes are error codes and two headers, so there are few. */
  readonly #accounts = new Map<string, RejectionAccount>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  count({ code, detail, malformed, address, principal }: Rejected): void {
    if (malformed) return
    const header = /^(origin|host): /.exec(detail ?? '')?.[1]
    const cause = header ?? code
    const account = this.#accounts.get(cause) ?? { slices: [], example: undefined, lastAt: 0 }
    this.#accounts.set(cause, account)
    const now = this.#clock.monotonic()
    const start = now - (now % rejectionSliceMs)
    let slice = account.slices.at(-1)
    if (slice?.start !== start) {
      slice = { start, addresses: new Map() }
      account.slices = [...account.slices, slice].slice(-rejectionSlices)
    }
    const known = address ?? 'unknown'
    const from = slice.addresses.has(known) || slice.addresses.size < maxAddresses ? known : otherAddresses
    slice.addresses.set(from, (slice.addresses.get(from) ?? 0) + 1)
    account.example = (header ? detail?.slice(header.length + 2) : principal)?.slice(0, 200)
    account.lastAt = this.#clock.now()
  }

  recent(): readonly RejectionCount[] {
    const since = this.#clock.monotonic() - rejectionWindowMs
    return [...this.#accounts].flatMap(([cause, account]) => {
      account.slices = account.slices.filter(({ start }) => start > since)
      if (account.slices.length === 0) return []
      const counts = new Map<string, number>()
      for (const { addresses } of account.slices) {
        for (const [address, count] of addresses) counts.set(address, (counts.get(address) ?? 0) + count)
      }
      const sorted = [...counts].sort((a, b) => b[1] - a[1])
      const count = sorted.reduce((sum, [, one]) => sum + one, 0)
      return [{ cause, count, example: account.example, addresses: sorted.slice(0, 5), lastAt: account.lastAt }]
    })
  }
}

import { type Caller, hasShare, ownerKey } from '../core/call.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Budgets } from '../core/limits/budget.ts'
import { RecentlyUsed } from '../core/limits/recently-used.ts'
import type { KeptResult, ResultStore, TtlStore } from '../core/stores.ts'
import { jsonValue } from '../json/parse-json.ts'
import type { Seal } from '../lib/seal.ts'

/** Larger results stay in the process that made the call. */
const maxSharedBytes = 512 * 1024

interface KeptResultsOptions {
  readonly budgets: Pick<Budgets, 'results' | 'result_bytes'>
  /** A store of several processes, and the seal for what is stored there. Undefined if this is the only process. */
  readonly shared?: { readonly ttlStore: TtlStore; readonly seal: Seal } | undefined
  readonly clock: Clock
}

interface StoredResult extends KeptResult {
  readonly key: string
  readonly owner: string | undefined
  readonly until: number
}

/** Whole results in memory. Smaller ones are also in the store that processes share, encrypted. */
export class KeptResults implements ResultStore, Disposable {
  readonly #options: KeptResultsOptions
  readonly #results = new Map<string, StoredResult>()
  readonly #order: RecentlyUsed<StoredResult>
  #timer: Timer | undefined

  constructor(options: KeptResultsOptions) {
    const { results, result_bytes } = options.budgets
    const bytes = { budget: result_bytes, of: (result: StoredResult) => result.bytes.length }
    this.#options = options
    this.#order = new RecentlyUsed([{ budget: results, of: () => 1 }, bytes], ({ key }) => this.#results.delete(key))
  }

  keep(caller: Caller, handle: string, { server, tool, bytes }: KeptResult, keepMs: number): void | Promise<void> {
    const { clock, shared } = this.#options
    const key = resultKeyOf(caller, handle)
    const owner = hasShare(caller) ? caller.principal : undefined
    this.#dropEnded()
    // A copy, because the bytes may be a slice of a larger buffer.
    const result = { key, owner, until: clock.monotonic() + keepMs, server, tool, bytes: Buffer.from(bytes) }
    this.#results.set(key, result)
    this.#order.add(result)
    this.#timer ??= clock.after(keepMs, () => this.#dropEnded())
    if (!shared || bytes.length > maxSharedBytes) return undefined
    const sealed = shared.seal.close(JSON.stringify({ server, tool, body: bytes.toString('utf8') }), key)
    return shared.ttlStore.set(`result:${handle}`, sealed, keepMs)
  }

  find(caller: Caller, handle: string, keepMs: number): KeptResult | undefined | Promise<KeptResult | undefined> {
    this.#dropEnded()
    const key = resultKeyOf(caller, handle)
    return this.#results.get(key) ?? (this.#options.shared && this.#findShared(key, handle, keepMs))
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
  }

  async #findShared(key: string, handle: string, keepMs: number): Promise<KeptResult | undefined> {
    const { shared } = this.#options
    const sealed = await shared?.ttlStore.get(`result:${handle}`, keepMs)
    const text = sealed === undefined ? undefined : shared?.seal.open(sealed, key)
    if (text === undefined) return undefined
    const { body, ...from } = jsonValue(text) as { server: string; tool: string; body: string }
    return { ...from, bytes: Buffer.from(body) }
  }

  /** Drops what is too old, and waits for the next one to be. */
  #dropEnded(): void {
    const { clock } = this.#options
    const now = clock.monotonic()
    for (const result of this.#results.values()) {
      if (result.until > now) continue
      this.#results.delete(result.key)
      this.#order.delete(result)
    }
    this.#timer?.[Symbol.dispose]()
    const { oldest } = this.#order
    this.#timer = oldest && clock.after(oldest.until - now, () => this.#dropEnded())
  }
}

const resultKeyOf = (caller: Caller, handle: string): string => `${ownerKey(caller)}\n${handle}`

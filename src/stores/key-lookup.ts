import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { keyFile, keyFileMark, readKeyFile, type StoredKey } from './key-file.ts'
import type { KeyUsage } from './key-usage.ts'

type ConfiguredKey = Config['auth']['keys'][number]

interface KnownKey extends ConfiguredKey {
  /** When the key expires, in milliseconds since the epoch; absent if it never expires. */
  readonly expires?: number | undefined
  /** Whether this is the secret before the last rotation. */
  readonly previous?: boolean
}

/** How often the key file is checked. A revoked key is noticed within this time. */
const keyFileLookMs = 1_000

/**
 * How often the key file is checked for keys that are not known, in addition. A new key is usually accepted at once, and
 * wrong keys do not cause a check each.
 */
const lookForUnknownMs = 100

/**
 * Looks up keys from the configuration and the key file. The key file is checked for changes while Toolway is running.
 * If the key file is untrusted, its keys are refused, but those in the configuration stay valid.
 */
export class ApiKeyLookup {
  readonly #options: KeyLookupOptions
  readonly #configuredIds = new Set<string>()
  readonly #configured = new Map<string, KnownKey>()
  #fromFile = new Map<string, KnownKey>()
  #mark: string | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  #lookedForUnknownAt = Number.NEGATIVE_INFINITY
  #problem: string | undefined

  constructor(options: KeyLookupOptions) {
    this.#options = options
    for (const key of options.configured) {
      if (this.#isConfigured(key)) options.log.warn({ key: key.id }, repeatedKey)
      else this.#configured.set(key.hash, key)
      this.#configuredIds.add(key.id)
    }
    this.changed()
  }

  /** Whether any key was ever issued. If so, requests without a key are anonymous. */
  get inUse(): boolean {
    this.#lookAgain()
    // If the key file cannot be trusted, keys also count as in use, because the file may contain some.
    return this.#configured.size > 0 || this.#mark !== undefined || this.#problem !== undefined
  }

  find(hash: string): KnownKey | undefined {
    this.#lookAgain()
    const found = this.#configured.get(hash) ?? this.#fromFile.get(hash)
    if (found || this.#options.clock.monotonic() - this.#lookedForUnknownAt < lookForUnknownMs) return found
    this.changed()
    this.#lookedForUnknownAt = this.#lookedAt
    return this.#fromFile.get(hash)
  }

  isValid(id: string): boolean {
    this.#lookAgain()
    const now = this.#options.clock.now()
    return [...this.#configured.values(), ...this.#fromFile.values()].some(
      (key) => key.id === id && (key.expires === undefined || key.expires > now),
    )
  }

  used({ id, previous }: KnownKey): void {
    this.#options.usage?.note(id, previous)
  }

  /** Reads the key file if it has changed, by this process or another one. */
  changed(): void {
    const { folder, clock, log } = this.#options
    const file = keyFile(folder)
    this.#lookedAt = clock.monotonic()
    try {
      const mark = keyFileMark(folder)
      if (mark === this.#mark) return
      // Set the mark before reading, so that a concurrent change is noticed at the next check.
      this.#mark = mark
      this.#fromFile = new Map(readKeyFile(folder).flatMap((key) => this.#entriesOf(key)))
      if (this.#problem !== undefined) log.info({ file }, 'the key file can be used again')
      this.#problem = undefined
    } catch (error) {
      this.#fromFile = new Map()
      const { message } = error as Error
      if (message !== this.#problem) log.error({ file }, `the keys in the key file are rejected: ${message}`)
      this.#problem = message
    }
  }

  #lookAgain(): void {
    if (this.#options.clock.monotonic() - this.#lookedAt >= keyFileLookMs) this.changed()
  }

  #isConfigured({ id, hash }: Pick<KnownKey, 'id' | 'hash'>): boolean {
    return this.#configuredIds.has(id) || this.#configured.has(hash)
  }

  /** A stored key and its previous secret, by their hashes. */
  #entriesOf({ id, hash, agents, admin, endpoints, expires, previous }: StoredKey): [string, KnownKey][] {
    const { folder, log } = this.#options
    if (this.#isConfigured({ id, hash })) {
      const sentence = 'ignoring a key in the key file that is also in auth.keys; revoke one of them'
      log.warn({ key: id, file: keyFile(folder) }, sentence)
      return []
    }
    const scope = endpoints && { endpoints }
    const key = { id, hash, agents, admin, ...scope, expires: expires === undefined ? undefined : Date.parse(expires) }
    if (!previous) return [[hash, key]]
    const old = { ...key, hash: previous.hash, expires: Date.parse(previous.until), previous: true }
    return [key, old].map((each) => [each.hash, each])
  }
}

const repeatedKey = 'auth.keys has two keys with this id or with the same hash; the first one is used'

interface KeyLookupOptions {
  readonly configured: readonly ConfiguredKey[]
  readonly folder: string
  readonly usage?: Pick<KeyUsage, 'note'>
  readonly clock: Clock
  readonly log: Log
}

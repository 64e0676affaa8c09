import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { keyFile, keyFileMark, readKeyFile } from './key-file.ts'
import type { KeyUsage } from './key-usage.ts'

type ConfiguredKey = Config['auth']['keys'][number]

interface KnownKey extends ConfiguredKey {
  /** When the key expires, in milliseconds since the epoch; absent if it never expires. */
  readonly expires?: number | undefined
  /** Whether this is the secret before the last rotation. */
  readonly previous?: boolean
}

interface Keys {
  /** Whether any key was ever issued. If so, requests without a key are anonymous. */
  readonly inUse: boolean
  find(hash: string): KnownKey | undefined
  /** Whether a key with this id exists and has not expired. */
  isValid(id: string): boolean
  /** Applies a change that this process made to the key file. */
  changed(): void
  /** Records that a key was accepted. */
  used(key: KnownKey): void
}

/** How often the key file is checked. A revoked key is noticed within this time. */
const lookMs = 1_000

/**
 * How often the key file is checked for keys that are not known, in addition. A new key is usually accepted at once, and
 * wrong keys do not cause a check each.
 */
const lookForUnknownMs = 100

/**
 * Looks up keys from the configuration and the key file. The key file is checked for changes while Toolway is running.
 * If the key file is untrusted, its keys are refused, but those in the configuration stay valid.
 */
export function createKeys(options: {
  readonly configured: readonly ConfiguredKey[]
  readonly folder: string
  readonly usage?: Pick<KeyUsage, 'note'>
  readonly clock: Clock
  readonly log: Log
}): Keys {
  const { folder, usage, clock, log } = options
  const ids = new Set<string>()
  const configured = new Map<string, KnownKey>()
  for (const key of options.configured) {
    if (ids.has(key.id) || configured.has(key.hash))
      log.warn({ key: key.id }, 'auth.keys has two keys with this id or with the same hash; the first one is used')
    else configured.set(key.hash, key)
    ids.add(key.id)
  }

  let fromFile = new Map<string, KnownKey>()
  let mark: string | undefined
  let looked = Number.NEGATIVE_INFINITY
  let lookedForUnknown = Number.NEGATIVE_INFINITY
  let problem: string | undefined

  const read = () => {
    const kept = new Map<string, KnownKey>()
    for (const { id, hash, agents, admin, expires, previous } of readKeyFile(folder)) {
      if (ids.has(id) || configured.has(hash))
        log.warn(
          { key: id, file: keyFile(folder) },
          'ignoring a key in the key file that is also in auth.keys; revoke one of them',
        )
      else {
        kept.set(hash, { id, hash, agents, admin, expires: expires === undefined ? undefined : Date.parse(expires) })
        if (previous) {
          kept.set(previous.hash, {
            id,
            hash: previous.hash,
            agents,
            admin,
            expires: Date.parse(previous.until),
            previous: true,
          })
        }
      }
    }
    return kept
  }
  const look = () => {
    looked = clock.monotonic()
    try {
      const now = keyFileMark(folder)
      if (now === mark) return
      // Set the mark before reading, so that a concurrent change is noticed at the next check.
      mark = now
      fromFile = read()
      if (problem !== undefined) log.info({ file: keyFile(folder) }, 'the key file can be used again')
      problem = undefined
    } catch (error) {
      fromFile = new Map()
      const { message } = error as Error
      if (message !== problem) log.error({ file: keyFile(folder) }, `the keys in the key file are rejected: ${message}`)
      problem = message
    }
  }
  look()

  const lookAgain = () => {
    if (clock.monotonic() - looked >= lookMs) look()
  }

  return {
    get inUse() {
      lookAgain()
      // If the key file cannot be trusted, keys also count as in use, because the file may contain some.
      return configured.size > 0 || mark !== undefined || problem !== undefined
    },
    find(hash) {
      lookAgain()
      const found = configured.get(hash) ?? fromFile.get(hash)
      if (found || clock.monotonic() - lookedForUnknown < lookForUnknownMs) return found
      look()
      lookedForUnknown = looked
      return fromFile.get(hash)
    },
    isValid(id) {
      lookAgain()
      const now = clock.now()
      return [...configured.values(), ...fromFile.values()].some(
        (key) => key.id === id && (key.expires === undefined || key.expires > now),
      )
    },
    changed: look,
    used: ({ id, previous }) => usage?.note(id, previous),
  }
}

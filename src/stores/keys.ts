import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { keyFile, keyFileMark, readKeyFile } from './key-file.ts'

/** An API key of the configuration. */
type ConfiguredKey = Config['auth']['keys'][number]

interface KnownKey extends ConfiguredKey {
  /** Milliseconds since the epoch; never if absent. */
  readonly expires?: number
}

/** API keys by their hash. */
interface Keys {
  /** Whether anybody was ever given one: then whoever shows none is nobody in particular. */
  readonly inUse: boolean
  find(hash: string): KnownKey | undefined
}

/** A key that was created or revoked meanwhile counts after this. */
const lookMs = 1_000

/**
 * The keys of the configuration and those of the key file, which is looked at again while Toolway runs. A key file
 * that cannot be trusted is no reason to stop: its keys are refused, the others go on.
 */
export function createKeys(options: {
  readonly configured: readonly ConfiguredKey[]
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}): Keys {
  const { folder, clock, log } = options
  const ids = new Set<string>()
  const configured = new Map<string, KnownKey>()
  for (const key of options.configured) {
    if (ids.has(key.id) || configured.has(key.hash)) {
      log.warn(
        { key: key.id },
        `auth.keys has the key ${key.id} twice, by its id or by its hash; only the first one counts`,
      )
    } else configured.set(key.hash, key)
    ids.add(key.id)
  }

  let fromFile = new Map<string, KnownKey>()
  let mark: string | undefined
  let looked = Number.NEGATIVE_INFINITY
  let problem: string | undefined

  const read = () => {
    const kept = new Map<string, KnownKey>()
    for (const { id, hash, agents, admin, expires } of readKeyFile(folder)) {
      if (ids.has(id) || configured.has(hash)) {
        log.warn(
          { key: id },
          `The key ${id} is in the configuration too, which counts; revoke the one in ${keyFile(folder)}`,
        )
      } else kept.set(hash, { id, hash, agents, admin, ...(expires !== undefined && { expires: Date.parse(expires) }) })
    }
    return kept
  }
  const look = () => {
    looked = clock.monotonic()
    try {
      const now = keyFileMark(folder)
      if (now === mark) return
      // Before it is read: what changes meanwhile is then seen the next time.
      mark = now
      fromFile = read()
      if (problem !== undefined) log.info({ file: keyFile(folder) }, 'The key file can be used again')
      problem = undefined
    } catch (error) {
      fromFile = new Map()
      const { message } = error as Error
      if (message !== problem) log.error({ file: keyFile(folder) }, `No key of the key file is accepted: ${message}`)
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
      // A file that cannot be trusted may hold keys all the same.
      return configured.size > 0 || mark !== undefined || problem !== undefined
    },
    find(hash) {
      lookAgain()
      return configured.get(hash) ?? fromFile.get(hash)
    },
  }
}

import { invalidArguments, ToolwayError } from '../core/errors.ts'
import { didYouMean } from '../lib/similar-text.ts'
import { changeKeyFile, KeyFileProblem, keyName, newApiKey, readKeyFile, type StoredKey } from './key-file.ts'
import { type LastUses, usageName } from './key-usage.ts'

/** An API key without its hash. Times are in milliseconds since the epoch. */
export interface ListedKey {
  readonly id: string
  readonly agents: readonly string[]
  readonly admin: boolean
  /** The named endpoints that it may connect to; absent if it may use all. */
  readonly endpoints?: readonly string[] | undefined
  /** When the current secret was created; null for keys in the configuration. */
  readonly created: number | null
  readonly expires: number | null
  readonly expired: boolean
  readonly lastUsed: number | null
  readonly source: 'configuration' | 'file'
  /** The secret before the last rotation, as long as it is valid. */
  readonly previous: { readonly until: number; readonly lastUsed: number | null } | null
}

interface KeyContext {
  readonly configured: readonly Pick<StoredKey, 'id' | 'agents' | 'admin' | 'endpoints'>[]
  readonly folder: string
  readonly now: number
}

/** All keys. With `problem`, the keys in the key file are not accepted. */
export function listApiKeys({ configured, folder, now }: KeyContext, uses: LastUses) {
  const inConfiguration = configured.map(
    ({ id, agents, admin, endpoints }): ListedKey => ({
      ...{ id, agents, admin, ...(endpoints && { endpoints }), created: null, expires: null, expired: false },
      ...{ lastUsed: uses.get(usageName(id)) ?? null, source: 'configuration', previous: null },
    }),
  )
  try {
    return { keys: [...inConfiguration, ...readKeyFile(folder).map((key) => listedKey(key, uses, now))] }
  } catch (error) {
    if (error instanceof KeyFileProblem) return { keys: inConfiguration, problem: error.message }
    throw error
  }
}

function listedKey(
  { id, agents, admin, endpoints, previous, ...key }: StoredKey,
  uses: LastUses,
  now: number,
): ListedKey {
  const created = Date.parse(key.created)
  const expires = key.expires === undefined ? null : Date.parse(key.expires)
  const until = previous === undefined ? 0 : Date.parse(previous.until)
  // An earlier use is that of the previous secret, or of a revoked key with the same name.
  const used = uses.get(usageName(id)) ?? null
  const lastUsed = used !== null && used > created ? used : null
  const previousUse = uses.get(usageName(id, true)) ?? (lastUsed === null ? used : null)
  return {
    ...{
      id,
      agents,
      admin,
      ...(endpoints && { endpoints }),
      created,
      expires,
      expired: expires !== null && expires <= now,
    },
    ...{ lastUsed, source: 'file', previous: until > now ? { until, lastUsed: previousUse } : null },
  }
}

export interface IssuedKey {
  /** The secret. It is shown once and never stored. */
  readonly key: string
  readonly stored: StoredKey
}

export interface NewKey {
  readonly id: string
  readonly agents: readonly string[]
  readonly admin: boolean
  /** The named endpoints that it may connect to. If omitted, it may use all. */
  readonly endpoints?: readonly string[] | undefined
  /** If omitted, the key does not expire. */
  readonly lifetimeMs?: number | undefined
}

export function checkNewKey({ id, admin, endpoints }: NewKey, configured: KeyContext['configured']): void {
  if (admin && endpoints) throw invalidArguments('A key for certain endpoints cannot be an admin key.')
  if (!keyName.test(id)) {
    throw invalidArguments(
      'Invalid key name: use up to 64 letters (A-Z, a-z), digits and . _ -, starting with a letter or digit.',
    )
  }
  if (configured.some((key) => key.id === id)) throw keyNameTaken(id, 'in the configuration')
}

/** Creates a key in the key file. A running gateway accepts it within a second. */
export async function createApiKey({ configured, folder, now }: KeyContext, wanted: NewKey): Promise<IssuedKey> {
  const { id, agents, admin, endpoints, lifetimeMs } = wanted
  checkNewKey(wanted, configured)
  const { key, hash } = newApiKey(id)
  const expires = lifetimeMs === undefined ? undefined : isoDate(now + lifetimeMs)
  // Versions before 0.3 refuse a file with the member `endpoints`, so write it only for keys that need it.
  const scope = endpoints && { endpoints: [...endpoints] }
  const stored = { id, hash, agents: [...agents], admin, ...scope, created: isoDate(now), expires }
  await change(folder, (keys) => {
    if (keys.some((other) => other.id === id)) throw keyNameTaken(id, 'in the key file')
    return [...keys, stored]
  })
  return { key, stored }
}

/**
 * Gives a key a new secret. The old one stays valid for `keepOldMs`; one from an earlier rotation ends. A key with an
 * expiry gets the same lifetime again. With `created`, refuses if another secret is the current one by now.
 */
export async function rotateApiKey(
  context: KeyContext,
  id: string,
  keepOldMs: number,
  created?: number,
): Promise<IssuedKey> {
  const { now } = context
  const { key, hash } = newApiKey(id)
  const rotated: StoredKey[] = []
  await change(context.folder, (keys) => {
    const old = requireKey(context, keys, id)
    if (created !== undefined && Date.parse(old.created) !== created) {
      const message = `The key ${id} has been rotated since you opened it; nothing was changed. Rotating it again ends the older secret at once.`
      throw new ToolwayError('INVALID_ARGUMENTS', message, { auditReason: 'conflict' })
    }
    const { expires } = old
    const until = Math.min(now + keepOldMs, expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires))
    const stored = {
      ...{ id, hash, agents: old.agents, admin: old.admin, endpoints: old.endpoints, created: isoDate(now) },
      expires: expires && isoDate(now + Date.parse(expires) - Date.parse(old.created)),
      previous: until > now ? { hash: old.hash, until: isoDate(until) } : undefined,
    }
    rotated.push(stored)
    return keys.map((other) => (other === old ? stored : other))
  })
  return { key, stored: rotated[0] as StoredKey }
}

/** Removes a key with all its secrets. A running gateway stops accepting it within a second. */
export const revokeApiKey = (context: KeyContext, id: string): Promise<void> =>
  change(context.folder, (keys) => {
    const found = requireKey(context, keys, id)
    return keys.filter((key) => key !== found)
  })

function requireKey({ configured }: KeyContext, keys: readonly StoredKey[], id: string): StoredKey {
  const found = keys.find((key) => key.id === id)
  if (found) return found
  if (configured.some((key) => key.id === id)) {
    throw invalidArguments(
      `The key ${id} is defined in the configuration: change auth.keys there (toolway keys create NAME --hash-only prints a new entry).`,
    )
  }
  const others = keys.map((key) => key.id)
  throw invalidArguments(`There is no key ${id.slice(0, 100)}${didYouMean(id, others)}`)
}

/** Changes the key file. A problem with it is an error of the request. */
const change = (folder: string, update: Parameters<typeof changeKeyFile>[1]): Promise<void> =>
  changeKeyFile(folder, update).catch((error) => {
    throw error instanceof KeyFileProblem ? invalidArguments(`${error.message}.`) : error
  })

const keyNameTaken = (id: string, where: string) =>
  invalidArguments(`A key named ${id} already exists ${where}: choose another name, or revoke that key first.`)

const isoDate = (ms: number): string => new Date(ms).toISOString()

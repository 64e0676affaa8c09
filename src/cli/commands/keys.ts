import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import {
  checkNewKey,
  createApiKey,
  type IssuedKey,
  type ListedKey,
  listApiKeys,
  revokeApiKey,
  rotateApiKey,
} from '../../stores/api-keys.ts'
import { keyFile, newApiKey } from '../../stores/key-file.ts'
import { readLastUses } from '../../stores/key-usage.ts'
import { audited } from '../audited.ts'
import type { CommonOptions, OptionsOf } from '../command-table.ts'
import {
  createOutput,
  type ExitCode,
  exit,
  invalidAsUsage,
  type Output,
  relativeTo,
  type Shell,
  UsageError,
} from '../kit.ts'
import { load } from '../load.ts'

/** Lists the API keys in the configuration and in the key file. */
export async function listKeys(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const { keys, problem } = listApiKeys(keyContextOf(config), readLastUses(config.stores.path))
  if (options.json) output.value({ keys: keys.map(withDates), problem })
  else if (keys.length === 0) output.note('There are no API keys.')
  else print(keys, output)
  const agents = keys.flatMap((key) => key.agents)
  warnOfAgents(agents, config, output)
  warnOfEndpoints(keys, config, output)
  if (problem === undefined) return exit.ok
  output.note(output.paintNote('red', `Keys in the key file are not accepted: ${problem}.`))
  return exit.failed
}

const keyContextOf = ({ auth, stores }: Config) => ({
  configured: auth.keys,
  folder: stores.path,
  now: systemClock.now(),
})

const dateOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

const withDates = ({ created, expires, lastUsed, previous, ...key }: ListedKey) => ({
  ...key,
  created: dateOf(created),
  expires: dateOf(expires),
  lastUsed: dateOf(lastUsed),
  previous: previous && { until: dateOf(previous.until), lastUsed: dateOf(previous.lastUsed) },
})

function print(keys: readonly ListedKey[], output: Output): void {
  const day = (ms: number | null): string | undefined => dateOf(ms)?.slice(0, 10)
  const minute = (ms: number | null): string | undefined => dateOf(ms)?.slice(0, 16).replace('T', ' ')
  output.table<ListedKey>(keys, [
    { title: 'ID', value: ({ id }) => id, whole: true },
    { title: 'AGENTS', value: ({ agents }) => agents.join(', ') },
    ...(keys.some(({ endpoints }) => endpoints)
      ? [{ title: 'ENDPOINTS', value: ({ endpoints }: ListedKey) => endpoints?.join(', ') ?? 'all' }]
      : []),
    { title: 'ADMIN', value: ({ admin }) => (admin ? 'yes' : '') },
    { title: 'CREATED', value: ({ created }) => day(created) ?? '' },
    { title: 'EXPIRES', value: ({ expires, expired }) => (expired ? 'expired' : (day(expires) ?? 'never')) },
    { title: 'LAST USED', value: ({ lastUsed }) => minute(lastUsed) ?? 'never' },
    { title: 'SOURCE', value: ({ source }) => source, style: (cell) => output.paint('dim', cell) },
  ])
  for (const { id, previous } of keys) {
    if (!previous) continue
    const used = previous.lastUsed === null ? 'it has not been used' : `last used ${minute(previous.lastUsed)}`
    output.note(`The old secret of ${id} is valid until ${minute(previous.until)}; ${used}.`)
  }
}

/** Warns about agents that do not exist, because requests made as such an agent are refused. */
function warnOfAgents(agents: readonly string[], config: Config, output: Output): void {
  const known = Object.keys(config.agents)
  for (const agent of new Set(agents)) {
    if (agent === '*' || known.includes(agent)) continue
    const unknown = `There is no agent ${agent} in the configuration${didYouMean(agent, known)}`
    output.warn(`${unknown} Requests with this key that act as this agent are refused.`)
  }
}

/** Warns about endpoints that do not exist, or whose agent the key may not act as: connections to them are refused. */
function warnOfEndpoints(
  keys: readonly Pick<ListedKey, 'id' | 'agents' | 'endpoints'>[],
  { endpoints }: Config,
  output: Output,
) {
  const warnings = keys.flatMap(({ id, agents, endpoints: names = [] }) =>
    names.flatMap((name) => {
      const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
      if (!endpoint)
        return [`There is no endpoint ${name} in the configuration${didYouMean(name, Object.keys(endpoints))}`]
      const { agent } = endpoint
      if (agent === undefined || agents.includes('*') || agents.includes(agent)) return []
      return [`The endpoint ${name} needs a key that may act as ${agent}; ${id} may not.`]
    }),
  )
  for (const warning of new Set(warnings)) output.warn(warning)
}

export async function revokeKey(shell: Shell, id: string, options: CommonOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const action = { operation: 'revoke_key', arguments: { id } } as const
  await invalidAsUsage(() => audited(config, action, () => revokeApiKey(keyContextOf(config), id)))
  const file = relativeTo(keyFile(config.stores.path), shell.cwd)
  if (options.json) output.value({ id, revoked: true })
  else output.print(`Revoked ${id}. A running gateway that uses ${file} stops accepting it within a second.`)
}

/** Gives a key a new secret. Only the key goes to stdout, so that scripts can read it. */
export async function rotateKey(
  shell: Shell,
  id: string,
  options: OptionsOf<'keys rotate'>,
): Promise<ExitCode | undefined> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const keepOldMs = options.keepOld
  const action = { operation: 'rotate_key', arguments: { id, keepOldMs } } as const
  const issued = await invalidAsUsage(() =>
    audited(config, action, () => rotateApiKey(keyContextOf(config), id, keepOldMs)),
  )
  const until = issued.stored.previous?.until
  if (!(await isPrinted(issued, { previousUntil: until ?? null }, shell, output, config))) {
    output.warn(`The new secret could not be shown. Make another one: ${shell.command} keys rotate ${id}`)
    return exit.failed
  }
  const old = until === undefined ? 'The old one ends within a second.' : `The old one stays valid until ${until}.`
  if (!output.json) output.note(`${once} ${old}`)
}

/** Prints a key. Resolves with whether everything that was printed has reached the output. */
function isPrinted({ key, stored }: IssuedKey, more: object, { stdout }: Shell, output: Output, { stores }: Config) {
  const { id, agents, admin, endpoints, created, expires = null } = stored
  const file = keyFile(stores.path)
  if (output.json) output.value({ id, key, agents, admin, endpoints, created, expires, file, ...more })
  else output.print(key)
  return new Promise<boolean>((resolve) => stdout.write('', (error) => resolve(!error)))
}

const once = 'The key is shown only once; Toolway stores only its hash.'

/** Creates an API key. Only the key goes to stdout, so that scripts can read it. */
export async function createKey(
  shell: Shell,
  id: string,
  options: OptionsOf<'keys create'>,
): Promise<ExitCode | undefined> {
  if (options.hashOnly && options.expires !== undefined) {
    throw new UsageError('Keys in the configuration do not expire.', 'Omit --expires or --hash-only.')
  }
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const { agent: agents = [], admin = false, endpoint: endpoints, expires: lifetimeMs } = options
  const wanted = { id, agents, admin, ...(endpoints && { endpoints }), lifetimeMs }
  await invalidAsUsage(() => checkNewKey(wanted, config.auth.keys))

  if (options.hashOnly) {
    const { key, hash } = newApiKey(id)
    const entry = { id, hash, agents, admin, ...(endpoints && { endpoints }) }
    const fields = Object.entries(entry).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    if (options.json) output.value({ key, entry })
    else {
      output.print(`${key}\n- { ${fields.join(', ')} }`)
      output.note(`${once} Add the second line to auth.keys in the configuration.`)
    }
  } else {
    const context = keyContextOf(config)
    const expires = lifetimeMs === undefined ? null : dateOf(context.now + lifetimeMs)
    const action = { operation: 'create_key', arguments: { id, agents, admin, endpoints, expires } } as const
    const create = () => createApiKey(context, wanted)
    const issued = await invalidAsUsage(() => audited(config, action, create))
    if (!(await isPrinted(issued, {}, shell, output, config))) {
      output.warn(`The key was created, but could not be shown. Remove it: ${shell.command} keys revoke ${id}`)
      return exit.failed
    }
    const file = relativeTo(keyFile(config.stores.path), shell.cwd)
    if (!output.json) {
      output.note(`${once} Its hash is in ${file}; a running gateway that uses this file accepts it within a second.`)
    }
  }
  warnOfAgents(agents, config, output)
  warnOfEndpoints([wanted], config, output)
}

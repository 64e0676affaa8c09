import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { didYouMean } from '../../lib/near.ts'
import {
  changeKeyFile,
  KeyFileProblem,
  keyFile,
  keyName,
  newApiKey,
  readKeyFile,
  type StoredKey,
} from '../../stores/key-file.ts'
import { audited } from '../audited.ts'
import { createOutput, type ExitCode, exit, type Output, relativeTo, type Shell, UsageError } from '../kit.ts'
import { type CommonOptions, load } from '../load.ts'

/** Lists the API keys in the configuration and in the key file. */
export async function listKeys(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const { keys, problem } = allKeys(config)
  if (options.json) output.value({ keys, problem })
  else if (keys.length === 0) output.note('There are no API keys.')
  else print(keys, output)
  const agents = keys.flatMap((key) => key.agents)
  warnOfAgents(agents, config, output)
  if (problem === undefined) return exit.ok
  output.note(output.paintNote('red', `Keys in the key file are not accepted: ${problem}.`))
  return exit.failed
}

type ListedKey = ReturnType<typeof allKeys>['keys'][number]

function allKeys(config: Config) {
  const now = systemClock.now()
  const listed = (key: Omit<StoredKey, 'hash' | 'created'> & { created?: string }, source: string) => {
    const { id, agents, admin, created = null, expires = null } = key
    return { id, agents, admin, created, expires, expired: expires !== null && Date.parse(expires) <= now, source }
  }
  const configured = config.auth.keys.map((key) => listed(key, 'configuration'))
  try {
    return { keys: [...configured, ...readKeyFile(config.stores.path).map((key) => listed(key, 'file'))] }
  } catch (error) {
    if (error instanceof KeyFileProblem) return { keys: configured, problem: error.message }
    throw error
  }
}

function print(keys: readonly ListedKey[], output: Output): void {
  output.table<ListedKey>(keys, [
    { title: 'ID', value: ({ id }) => id, whole: true },
    { title: 'AGENTS', value: ({ agents }) => agents.join(', ') },
    { title: 'ADMIN', value: ({ admin }) => (admin ? 'yes' : '') },
    { title: 'CREATED', value: ({ created }) => created?.slice(0, 10) ?? '' },
    { title: 'EXPIRES', value: ({ expires, expired }) => (expired ? 'expired' : (expires?.slice(0, 10) ?? 'never')) },
    { title: 'SOURCE', value: ({ source }) => source, style: (cell) => output.paint('dim', cell) },
  ])
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

export async function revokeKey(shell: Shell, id: string, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  await audited(config, { operation: 'revoke_key', arguments: { id } }, () =>
    changeKeys(config, (keys) => {
      const rest = keys.filter((key) => key.id !== id)
      if (rest.length < keys.length) return rest
      throw notInFile(id, config, rest)
    }),
  )
  if (options.json) output.value({ id, revoked: true })
  else output.print(`Revoked ${id}. A running gateway stops accepting it within a second.`)
  return exit.ok
}

function notInFile(id: string, config: Config, keys: readonly StoredKey[]): UsageError {
  if (config.auth.keys.some((key) => key.id === id)) {
    return new UsageError(`${id} is defined in the configuration.`, 'Remove it from auth.keys and restart.')
  }
  const others = keys.map((key) => key.id)
  return new UsageError(`There is no key ${id}${didYouMean(id, others)}`)
}

/** Changes the key file. A problem with it becomes a UsageError. */
const changeKeys = (config: Config, change: Parameters<typeof changeKeyFile>[1]): Promise<void> =>
  changeKeyFile(config.stores.path, change).catch((error) => {
    throw error instanceof KeyFileProblem ? new UsageError(`${error.message}.`) : error
  })

interface CreateKeyOptions extends CommonOptions {
  readonly agent?: readonly string[]
  readonly admin?: boolean
  readonly expires?: number
  readonly hashOnly?: boolean
}

const once = 'The key is shown only once; Toolway stores only its hash.'

/** Creates an API key. Only the key goes to stdout, so that scripts can read it. */
export async function createKey(shell: Shell, id: string, options: CreateKeyOptions): Promise<ExitCode> {
  requireValid(id, options)
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  if (config.auth.keys.some((key) => key.id === id)) throw taken(id, 'in the configuration')
  const { agent: agents = [], admin = false, expires: lifetime } = options
  const { key, hash } = newApiKey(id)
  const entry = { id, hash, agents, admin }

  if (options.hashOnly) {
    const fields = Object.entries(entry).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    if (options.json) output.value({ key, entry })
    else {
      output.print(`${key}\n- { ${fields.join(', ')} }`)
      output.note(`${once} Add the second line to auth.keys in the configuration.`)
    }
  } else {
    const now = systemClock.now()
    const created = new Date(now).toISOString()
    const expires = lifetime === undefined ? undefined : new Date(now + lifetime).toISOString()
    await audited(config, { operation: 'create_key', arguments: { id, agents, admin, expires: expires ?? null } }, () =>
      changeKeys(config, (keys) => {
        if (keys.some((other) => other.id === id)) throw taken(id, 'in the key file')
        return [...keys, { ...entry, agents: [...agents], created, expires }]
      }),
    )
    const file = keyFile(config.stores.path)
    if (options.json) output.value({ id, key, agents, admin, created, expires: expires ?? null, file })
    else {
      output.print(key)
      output.note(
        `${once} Its hash is in ${relativeTo(file, shell.cwd)}; a running gateway accepts it within a second.`,
      )
    }
  }
  warnOfAgents(agents, config, output)
  return exit.ok
}

function requireValid(id: string, { hashOnly, expires }: CreateKeyOptions): void {
  if (!keyName.test(id)) {
    throw new UsageError('Invalid key name: use up to 64 letters, digits and . _ -, starting with a letter or digit.')
  }
  if (hashOnly && expires !== undefined) {
    throw new UsageError('Keys in the configuration do not expire.', 'Omit --expires or --hash-only.')
  }
}

const taken = (id: string, where: string): UsageError =>
  new UsageError(`A key named ${id} already exists ${where}.`, 'Choose another name, or revoke that key first.')

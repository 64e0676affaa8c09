import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { didYouMean } from '../../lib/near.ts'
import { changeKeyFile, KeyFileProblem, keyFile, keyName, newApiKey, readKeyFile } from '../../stores/key-file.ts'
import { audited } from '../audited.ts'
import { createOutput, type ExitCode, exit, type Output, relativeTo, type Shell, UsageError } from '../kit.ts'
import { type CommonOptions, load } from '../load.ts'
import { table } from '../table.ts'

interface ListedKey {
  readonly id: string
  readonly agents: readonly string[]
  readonly admin: boolean
  readonly created: string | null
  readonly expires: string | null
  readonly expired: boolean
  readonly source: 'configuration' | 'file'
}

/** Lists the API keys of the configuration and of the key file. */
export async function listKeys(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  const { keys, problem } = allKeys(config)
  if (options.json) output.value({ keys, ...(problem !== undefined && { problem }) })
  else if (keys.length === 0) output.note('There are no API keys.')
  else print(keys, output)
  warnOfAgents(
    keys.flatMap(({ agents }) => agents),
    config,
    output,
  )
  if (problem === undefined) return exit.ok
  output.note(output.paintNote('red', `Keys in the key file are not accepted: ${problem}.`))
  return exit.failed
}

function allKeys(config: Config): { keys: ListedKey[]; problem?: string } {
  const now = systemClock.now()
  const configured = config.auth.keys.map(
    ({ id, agents, admin }): ListedKey => ({
      ...{ id, agents, admin, created: null, expires: null },
      expired: false,
      source: 'configuration',
    }),
  )
  try {
    const kept = readKeyFile(config.stores.path).map(
      ({ id, agents, admin, created, expires = null }): ListedKey => ({
        ...{ id, agents, admin, created, expires },
        expired: expires !== null && Date.parse(expires) <= now,
        source: 'file',
      }),
    )
    return { keys: [...configured, ...kept] }
  } catch (error) {
    if (error instanceof KeyFileProblem) return { keys: configured, problem: error.message }
    throw error
  }
}

function print(keys: readonly ListedKey[], { print, paint, width }: Output): void {
  const lines = table<ListedKey>(
    [
      { title: 'ID', value: ({ id }) => id, whole: true },
      { title: 'AGENTS', value: ({ agents }) => agents.join(', ') },
      { title: 'ADMIN', value: ({ admin }) => (admin ? 'yes' : '') },
      { title: 'CREATED', value: ({ created }) => created?.slice(0, 10) ?? '' },
      { title: 'EXPIRES', value: ({ expires, expired }) => (expired ? 'expired' : (expires?.slice(0, 10) ?? 'never')) },
      { title: 'SOURCE', value: ({ source }) => source, style: (cell) => paint('dim', cell) },
    ],
    keys,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
}

/** Warns about unknown agents now: later the key would just be refused. */
export function warnOfAgents(agents: readonly string[], config: Config, output: Output): void {
  const known = Object.keys(config.agents)
  for (const agent of new Set(agents)) {
    if (agent === '*' || known.includes(agent)) continue
    const sentence = `There is no agent ${agent} in the configuration${didYouMean(agent, known)} Until then, requests that act as it with this key are refused.`
    output.note(output.paintNote('yellow', sentence))
  }
}

/** Revokes a key. */
export async function revokeKey(shell: Shell, id: string, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  await audited(config, { operation: 'revoke_key', arguments: { id } }, () =>
    changed(config, (keys) => {
      const rest = keys.filter((key) => key.id !== id)
      if (rest.length < keys.length) return rest
      throw notInFile(
        id,
        config,
        keys.map((key) => key.id),
      )
    }),
  )
  if (options.json) output.value({ id, revoked: true })
  else output.print(`Revoked ${id}. A running gateway refuses it within a second.`)
  return exit.ok
}

function notInFile(id: string, config: Config, others: readonly string[]): UsageError {
  if (config.auth.keys.some((key) => key.id === id)) {
    return new UsageError(`${id} is defined in the configuration.`, 'Remove it from auth.keys and restart.')
  }
  return new UsageError(`There is no key ${id}${didYouMean(id, others)}`)
}

/** Changes the key file; a problem with it becomes a UsageError. */
export async function changed(config: Config, change: Parameters<typeof changeKeyFile>[1]): Promise<void> {
  try {
    await changeKeyFile(config.stores.path, change)
  } catch (error) {
    throw error instanceof KeyFileProblem ? new UsageError(`${error.message}.`) : error
  }
}

interface CreateKeyOptions extends CommonOptions {
  readonly agent?: readonly string[]
  readonly admin?: boolean
  readonly expires?: number
  readonly hashOnly?: boolean
}

const once = 'The key is shown only now; Toolway stores just a hash of it.'

/** Creates an API key. Only the key goes to stdout, so that scripts can read it. */
export async function createKey(shell: Shell, id: string, options: CreateKeyOptions): Promise<ExitCode> {
  check(id, options)
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  refuseTaken(id, config)
  const { agent: agents = [], admin = false, expires: lifetime } = options
  const { key, hash } = newApiKey(id)
  const entry = { id, hash, agents, admin }

  if (options.hashOnly) {
    const line = `- { id: ${JSON.stringify(id)}, hash: ${JSON.stringify(hash)}, agents: ${JSON.stringify(agents)}, admin: ${admin} }`
    if (options.json) output.value({ key, entry })
    else {
      output.print(key)
      output.print(line)
      output.note(`${once} Put the line below it under auth.keys in the configuration.`)
    }
  } else {
    const now = systemClock.now()
    const created = new Date(now).toISOString()
    const expires = lifetime === undefined ? undefined : new Date(now + lifetime).toISOString()
    await audited(config, { operation: 'create_key', arguments: { id, agents, admin, expires: expires ?? null } }, () =>
      changed(config, (keys) => {
        if (keys.some((other) => other.id === id)) throw taken(id, 'in the key file')
        return [...keys, { ...entry, agents: [...agents], created, ...(expires !== undefined && { expires }) }]
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

function check(id: string, { hashOnly, expires }: CreateKeyOptions): void {
  if (!keyName.test(id)) {
    throw new UsageError('The name of a key has up to 64 letters, digits and . _ -, and starts with a letter or digit.')
  }
  if (hashOnly && expires !== undefined) {
    throw new UsageError('Keys in the configuration do not expire.', 'Omit --expires or --hash-only.')
  }
}

function refuseTaken(id: string, { auth }: Config): void {
  if (auth.keys.some((key) => key.id === id)) throw taken(id, 'in the configuration')
}

const taken = (id: string, where: string): UsageError =>
  new UsageError(`A key named ${id} already exists ${where}.`, 'Choose another name, or revoke that key first.')

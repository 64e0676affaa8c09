import { join } from 'node:path'
import type { Draft } from '../../admin/config/config-file.ts'
import { disabledReason, prepareImport } from '../../admin/config/prepare-import.ts'
import { agentsAllowed, allowingChange } from '../../admin/config/propose-edit.ts'
import { starterWith } from '../../admin/config/starter.ts'
import { adaptServer, type PlannedServer } from '../../clients/import-plan.ts'
import { editText as changedText, contentOf, type NewServer, serversBlock } from '../../config/edit/edit-text.ts'
import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { ConfigError } from '../../config/problems.ts'
import { serverName } from '../../config/schema/mcp-servers.ts'
import { keyPath } from '../../config/tree.ts'
import { plainName } from '../../config/validate.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, editText, type Shell, UsageError } from '../kit.ts'
import {
  appliedAutomatically,
  type ConfigFile,
  noteOf,
  openConfig,
  refuseWorse,
  retryIfChanged,
  secretsLeft,
  showChange,
  writeConfig,
} from './config-file.ts'

type AddOptions = OptionsOf<'add'>

export const addServer = (shell: Shell, name: string, words: readonly string[], options: AddOptions): Promise<void> =>
  retryIfChanged(() => tryToAdd(shell, name, words, options))

/** Prints nothing before the file is written, because it may be called again. */
async function tryToAdd(shell: Shell, name: string, words: readonly string[], options: AddOptions): Promise<void> {
  const { json, dryRun, force } = options
  requireValidName(name)
  const definition = definitionOf(words, options)
  const file = await openConfig(shell, options)
  const replaced = file.text.names.includes(name)
  if (replaced && !force) {
    throw new UsageError(
      `${file.named} already has a server named ${name}.`,
      'Replace it with --force, or choose another name.',
    )
  }
  const { server, prepared, after, agents } = await planAddition(shell, file, { name, definition }, options.allow)
  const output = createOutput(shell, json)
  const changes = after !== file.before.text
  const written = changes && !dryRun
  let stateNote: string | undefined
  if (written) {
    await prepared.writeSecrets()
    stateNote = await writeConfig(file, after, shell)
  }
  if (changes && !json && (dryRun || replaced)) showChange(file, after, output)
  const lost = settingsLost(file, server)
  const left = secretsLeft(file, name, server.definition)
  if (json) {
    const { secrets } = prepared
    output.value({ file: file.path, name, lost, left, secrets, waiting: server.waiting, agents, replaced, written })
    return
  }
  const how = replaced ? `Replaced ${name} in` : `Added ${name} to`
  if (written) output.print(`${how} ${file.named}. ${appliedAutomatically}`)
  else if (!changes) output.print(`${file.named} already contains ${name} with these settings.`)
  if (stateNote !== undefined) output.note(stateNote)
  if (lost.length > 0) output.warn(`These settings from the old entry were removed: ${lost.join(', ')}.`)
  if (left.length > 0) output.note(`Its old secrets are still in ${left.join(', ')}.`)
  noteOf(prepared, output, 'file')
  if (agents?.length === 0)
    output.warn(`No agent may use ${name}: allow it with --allow AGENT, or in agents.NAME.allow.`)
  else if (agents) output.note(`Agents that may use ${name}: ${agents.join(', ')}.`)
  const client = kindOf(file.path)
  if (client && prepared.secrets > 0) {
    output.warn(`${clientLabels[client]} also reads ${file.named} and does not understand \${file:…}.`)
  }
  const config = options.config ? ` --config ${file.named}` : ''
  if (written && server.waiting.length === 0) {
    output.note(`Try it: ${shell.command} doctor --server ${name}${config}`)
  }
}

/** Settings that the command line can set. */
const ownKeys = ['command', 'args', 'env', 'url', 'transport', 'headers', 'cwd']

/** Settings that the replaced server has and the new definition lacks. */
const settingsLost = ({ servers }: ConfigFile, { name, definition }: PlannedServer): string[] =>
  Object.keys(servers.get(name) ?? {}).filter((key) => !ownKeys.includes(key) && !Object.hasOwn(definition, key))

function requireValidName(name: string): void {
  const { error } = serverName.safeParse(name)
  if (!error) return
  const near = plainName(name)
  throw new UsageError(
    `Invalid server name ${JSON.stringify(name)}${near === undefined ? '.' : `; did you mean ${near}?`}`,
    `Use ${error.issues[0]?.message ?? 'another name'}.`,
  )
}

const isUrl = (word: string): boolean => /^[a-z][a-z\d+.-]*:\/\//i.test(word)

/** A server's definition, from a URL or from a command with its arguments. */
function definitionOf([first = '', ...rest]: readonly string[], options: AddOptions): ServerDefinition {
  const { transport, env, header } = options
  const explicit = transport && { transport }
  if (isUrl(first)) {
    if (rest.length > 0) throw new UsageError('A URL takes no arguments.', 'Pass headers with --header "Name: value".')
    if (env) throw new UsageError('--env is only for commands.', 'Pass headers for a URL with --header "Name: value".')
    if (transport === 'stdio') throw new UsageError('--transport stdio needs a command, not a URL.')
    return { url: first, ...explicit, headers: Object.fromEntries((header ?? []).map(parseHeader)) }
  }
  if (header)
    throw new UsageError('--header is only for URLs.', 'Pass environment variables to a command with --env KEY=VALUE.')
  if (transport !== undefined && transport !== 'stdio') {
    throw new UsageError(`--transport ${transport} needs a URL, which begins with https:// or http://.`)
  }
  return { command: first, ...explicit, args: rest, env: Object.fromEntries((env ?? []).map(parseVariable)) }
}

// The values of these options may be secrets, so error messages do not repeat them.

function parseVariable(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError('Invalid --env: expected KEY=VALUE.')
  return [name, value]
}

function parseHeader(text: string): [string, string] {
  const [, name, value] = /^\s*([^:\s]+)\s*:(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new UsageError(
      'Invalid --header: expected "Name: value".',
      'Quote it, so that the shell passes it as one argument.',
    )
  }
  return [name, value.trim()]
}

/** Plans where the secrets are stored and what the file will contain, and checks the result. */
async function planAddition(
  shell: Shell,
  file: ConfigFile,
  { name, definition }: Pick<PlannedServer, 'name' | 'definition'>,
  allow: readonly string[] = [],
) {
  const origin = { path: join(shell.cwd, 'toolway'), scope: 'user' as const }
  const read = { name, definition, key: '', impliedFolder: shell.cwd, plain: [], problems: [] }
  const found = adaptServer(read, origin, file.path)
  const prepared = await prepareImport(shell, [found], new Map(), 'file')
  const server = prepared.added[0] as PlannedServer
  const waits = server.waiting.length > 0
  const comment = waits ? disabledReason(server.waiting) : undefined
  const changes = allow.map((agent) => allowingChange(agent, [name], contentOf(file.path, file.before.text)))
  const fileWith = (one: ServerDefinition): string => {
    const text = withServer(file, { name, definition: kindOf(file.path) ? typed(one) : one, comment })
    return editText(file.named, () => changedText(file.path, text, changes))
  }
  // The secret files do not exist yet, so check the definition with the secrets inline.
  const draft = await requireValid(file, name, fileWith({ ...found.definition, ...(waits && { disabled: true }) }))
  return { server, prepared, after: fileWith(server.definition), agents: agentsAllowed(draft, name) }
}

/** The file's text with the server added. A new YAML file starts from the commented starter. */
function withServer({ before, path, named, text }: ConfigFile, server: NewServer): string {
  if (!before.bytes && /\.ya?ml$/.test(path)) return starterWith(serversBlock([server]))
  return editText(named, () => text.set(server))
}

/** Adds the `type` that clients need for URLs. */
function typed({ transport, ...rest }: ServerDefinition): ServerDefinition {
  if (rest.url === undefined) return rest
  return { type: transport ?? (/\/sse\/?$/.test(String(rest.url)) ? 'sse' : 'http'), ...rest }
}

/** Reports problems with the new server as problems with the command line. */
async function requireValid(file: ConfigFile, name: string, draft: string): Promise<Draft> {
  try {
    return await refuseWorse(file, draft)
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const prefix = `${keyPath(['mcpServers', name])}.`
    const own = thrown.problems.filter(({ key }) => `${key}.`.startsWith(prefix))
    if (own.length === 0) throw thrown
    const faults = own.map(({ key, message }) => [key.slice(prefix.length), message].filter(Boolean).join(': '))
    throw new UsageError(`${name} cannot be added: ${faults.join('; ')}.`, 'Nothing was written.')
  }
}

export const removeServer = (shell: Shell, name: string, options: OptionsOf<'remove'>): Promise<void> =>
  retryIfChanged(() => tryToRemove(shell, name, options))

async function tryToRemove(shell: Shell, name: string, options: OptionsOf<'remove'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const file = await openConfig(shell, options)
  const { named, path, text } = file
  if (!file.before.bytes)
    throw new UsageError(`${named} does not exist.`, 'Specify the configuration file with --config.')
  if (!text.names.includes(name)) {
    throw new UsageError(
      `There is no server ${name} in ${named}${didYouMean(name, text.names)}`,
      text.names.length > 0 ? `Servers in this file: ${text.names.join(', ')}.` : 'The file contains no servers.',
    )
  }
  const after = editText(named, () => text.remove(name))
  await refuseWorse(file, after)
  if (!options.dryRun) await writeConfig(file, after, shell)
  if (!options.json) showChange(file, after, output)
  const left = secretsLeft(file, name)
  if (options.json) output.value({ file: path, name, left, written: !options.dryRun })
  else if (!options.dryRun) {
    output.print(`Removed ${name} from ${named}. ${appliedAutomatically}`)
    if (left.length > 0) output.note(`Its secrets are still in ${left.join(', ')}.`)
  }
}

import { join } from 'node:path'
import { adaptServer, type PlannedServer } from '../../clients/import-plan.ts'
import { type NewServer, serversBlock } from '../../clients/yaml-servers.ts'
import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { ConfigError } from '../../config/problems.ts'
import { serverName } from '../../config/schema/mcp-servers.ts'
import { keyPath } from '../../config/tree.ts'
import { plainName } from '../../config/validate.ts'
import { didYouMean } from '../../lib/near.ts'
import {
  commandName,
  createOutput,
  type ExitCode,
  editText,
  exit,
  type Output,
  type Shell,
  UsageError,
  withFileProblems,
} from '../kit.ts'
import {
  type ConfigFile,
  type EditConfigOptions,
  openConfig,
  refuseWorse,
  secretsLeft,
  showChange,
  starterWith,
  takenOver,
  writeConfig,
} from './config-file.ts'
import { noteOf, type PreparedImport, prepareImport } from './prepare-import.ts'

interface AddOptions extends EditConfigOptions, DefinitionOptions {
  readonly force?: boolean
}

/** Adds one server to the configuration. */
export const addServer = (
  shell: Shell,
  name: string,
  words: readonly string[],
  options: AddOptions,
): Promise<ExitCode> => withFileProblems(() => add(shell, name, words, options))

async function add(shell: Shell, name: string, words: readonly string[], options: AddOptions): Promise<ExitCode> {
  const { json, dryRun, force } = options
  refuseName(name)
  const definition = definitionOf(words, options)
  const file = await openConfig(shell, options)
  const replaced = file.text.names.includes(name)
  if (replaced && !force) {
    throw new UsageError(
      `${file.named} already has a server ${name}.`,
      'Replace it with --force, or choose another name.',
    )
  }
  const addition = await planAddition(shell, file, name, definition)
  const output = createOutput(shell, json)
  const changes = addition.after !== file.before.text
  if (changes && !json && (dryRun || replaced)) showChange(file, addition.after, output)
  const written = changes && !dryRun
  if (written) {
    await addition.prepared.writeSecrets()
    await writeConfig(file, addition.after)
  }
  if (json) output.value(asJson(file, addition, { replaced, written }))
  else {
    const how = replaced ? `Replaced ${name} in` : `Added ${name} to`
    if (written) output.print(`${how} ${file.named}. ${takenOver}`)
    else if (!changes) output.print(`${name} is already in ${file.named} exactly like this.`)
    tell(file, addition, output)
    const config = options.config ? ` --config ${file.named}` : ''
    if (written && addition.server.waiting.length === 0) {
      output.note(`Try it: ${commandName(shell.env)} doctor --server ${name}${config}`)
    }
  }
  return exit.ok
}

function tell(file: ConfigFile, { server, prepared }: Addition, output: Output): void {
  const { note, paintNote } = output
  const lost = settingsLost(file, server)
  const left = secretsLeft(file, server.name, server.definition)
  if (lost.length > 0) note(paintNote('yellow', `These settings of the old entry are gone: ${lost.join(', ')}.`))
  if (left.length > 0) note(`Its old secrets are still in ${left.join(', ')}.`)
  noteOf(prepared, output, 'file')
  const client = kindOf(file.path)
  if (client && prepared.secrets > 0) {
    note(paintNote('yellow', `${clientLabels[client]} also reads ${file.named} and does not understand \${file:…}.`))
  }
}

const asJson = (file: ConfigFile, { server, prepared }: Addition, done: { replaced: boolean; written: boolean }) => ({
  file: file.path,
  name: server.name,
  lost: settingsLost(file, server),
  left: secretsLeft(file, server.name, server.definition),
  secrets: prepared.secrets,
  waiting: server.waiting,
  ...done,
})

/** Keys that the command line sets. */
const said = ['command', 'args', 'env', 'url', 'transport', 'headers', 'cwd']

/** Settings of the replaced server that the new one does not have. */
function settingsLost(
  { servers }: ConfigFile,
  { name, definition }: { name: string; definition: ServerDefinition },
): string[] {
  return Object.keys(servers.get(name) ?? {}).filter((key) => !said.includes(key) && !Object.hasOwn(definition, key))
}

/** Keys that the command line sets. */
interface DefinitionOptions {
  readonly env?: readonly string[]
  readonly header?: readonly string[]
  readonly transport?: 'http' | 'sse' | 'stdio'
}

/** Refuses what the configuration would not take for a name. */
function refuseName(name: string): void {
  const { error } = serverName.safeParse(name)
  if (!error) return
  const near = plainName(name)
  throw new UsageError(
    `A server cannot be called ${JSON.stringify(name)}${near === undefined ? '.' : `; did you mean ${near}?`}`,
    `Take ${error.issues[0]?.message ?? 'another name'}.`,
  )
}

const isAddress = (word: string): boolean => /^[a-z][a-z\d+.-]*:\/\//i.test(word)

/** The server that somebody describes: at an address, or a program with its words. */
function definitionOf([first = '', ...rest]: readonly string[], options: DefinitionOptions): ServerDefinition {
  const { transport } = options
  const given = transport && { transport }
  if (isAddress(first)) {
    if (rest.length > 0) throw new UsageError('A URL stands alone.', 'Headers are given with --header "Name: value".')
    if (options.env) throw new UsageError('--env is for a command.', 'What a URL wants to be sent is a --header.')
    if (transport === 'stdio') throw new UsageError('--transport stdio needs a command, not a URL.')
    return { url: first, ...given, headers: pairs(options.header, header) }
  }
  if (options.header) throw new UsageError('--header is for a URL.', 'What a command needs is given with --env.')
  if (transport !== undefined && transport !== 'stdio') {
    throw new UsageError(`--transport ${transport} needs a URL, which begins with https:// or http://.`)
  }
  return { command: first, ...given, args: rest, env: pairs(options.env, variable) }
}

type Pair = readonly [string, string]

/** What is given with an option may be a secret, so no complaint repeats it. */
const pairs = (given: readonly string[] = [], of: (text: string) => Pair): Record<string, string> =>
  Object.fromEntries(given.map(of))

function variable(text: string): Pair {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError('--env is written as KEY=VALUE.')
  return [name, value]
}

function header(text: string): Pair {
  const [, name, value] = /^\s*([^:\s]+)\s*:(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new UsageError('--header is written as "Name: value".', 'Quote it, so that the shell keeps it in one piece.')
  }
  return [name, value.trim()]
}

/** A checked server that is not written yet. */
interface Addition {
  readonly server: PlannedServer
  readonly prepared: PreparedImport
  readonly after: string
}

/** Plans where the secrets go and what the file will contain, and checks the result. */
async function planAddition(
  shell: Shell,
  file: ConfigFile,
  name: string,
  definition: ServerDefinition,
): Promise<Addition> {
  const origin = { path: join(shell.cwd, 'toolway'), scope: 'user' as const }
  const found = adaptServer({ name, definition, key: '', impliedFolder: shell.cwd, problems: [] }, origin, file.path)
  const prepared = await prepareImport(shell, [found], new Map(), 'file')
  const server = prepared.added[0] as PlannedServer
  const waiting = server.waiting.length > 0 && { comment: `disabled until this exists: ${server.waiting.join(', ')}` }
  const fileWith = (one: ServerDefinition): string =>
    withServer(file, { name, definition: kindOf(file.path) ? typed(one) : one, ...waiting })
  // The secret files do not exist yet, so check the definition with its secrets.
  await refuseUnfit(file, name, fileWith({ ...found.definition, ...(waiting && { disabled: true }) }))
  return { server, prepared, after: fileWith(server.definition) }
}

/** A new YAML file starts from the commented starter. */
function withServer({ before, path, named, text }: ConfigFile, server: NewServer): string {
  if (!before.bytes && /\.ya?ml$/.test(path)) return starterWith(serversBlock([server]))
  return editText(named, () => text.set(server))
}

/** Clients need a `type` for URLs. */
function typed({ transport, ...rest }: ServerDefinition): ServerDefinition {
  if (rest.url === undefined) return rest
  return { type: transport ?? (/\/sse\/?$/.test(String(rest.url)) ? 'sse' : 'http'), ...rest }
}

/** Reports problems of the new server as problems of the command line. */
async function refuseUnfit(file: ConfigFile, name: string, draft: string): Promise<void> {
  try {
    await refuseWorse(file, draft)
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    const prefix = `${keyPath(['mcpServers', name])}.`
    const own = thrown.problems.filter(({ key }) => `${key}.`.startsWith(prefix))
    if (own.length === 0) throw thrown
    const faults = own.map(({ key, message }) => [key.slice(prefix.length), message].filter(Boolean).join(': '))
    throw new UsageError(`${name} cannot be added: ${faults.join('; ')}.`, 'Nothing was written.')
  }
}

/** Removes one server from the configuration. */
export const removeServer = (shell: Shell, name: string, options: EditConfigOptions): Promise<ExitCode> =>
  withFileProblems(() => remove(shell, name, options))

async function remove(shell: Shell, name: string, options: EditConfigOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const file = await openConfig(shell, options)
  const { named, path, text } = file
  if (!file.before.bytes) throw new UsageError(`There is no ${named}.`, 'Name the configuration with --config.')
  if (!text.names.includes(name)) {
    throw new UsageError(
      `There is no server ${name} in ${named}${didYouMean(name, text.names)}`,
      text.names.length > 0 ? `It has ${text.names.join(', ')}.` : 'It has none.',
    )
  }
  const after = editText(named, () => text.remove(name))
  await refuseWorse(file, after)
  if (!options.json) showChange(file, after, output)
  if (!options.dryRun) await writeConfig(file, after)
  const left = secretsLeft(file, name)
  if (options.json) output.value({ file: path, name, left, written: !options.dryRun })
  else if (!options.dryRun) {
    output.print(`Removed ${name} from ${named}. ${takenOver}`)
    if (left.length > 0) output.note(`Its secrets are still in ${left.join(', ')}.`)
  }
  return exit.ok
}

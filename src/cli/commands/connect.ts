import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type ClientText, type ClientTransport, clientText, entryFor } from '../../clients/entry.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { variablesIn } from '../../clients/secrets.ts'
import { readSnapshot } from '../../config/edit/file.ts'
import { type ClientFile, clientLabels } from '../../config/import/client-kind.ts'
import { clientOnly } from '../../config/import/client-server.ts'
import { ownEntryName } from '../../config/import/own-entry.ts'
import { type ReadServer, readServers, type ServersFile } from '../../config/import/read-servers.ts'
import type { ConfigDialect } from '../../config/import/shape.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { problemText } from '../../config/problems.ts'
import { keyPath } from '../../config/tree.ts'
import { endpointPath } from '../../core/endpoint-path.ts'
import { homeOf } from '../../core/home.ts'
import { pluralize } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { keptToken } from '../../stores/secret-file.ts'
import type { OptionsOf } from '../command-table.ts'
import {
  confirm,
  createOutput,
  type ExitCode,
  editText,
  exit,
  isInteractive,
  type Output,
  type Shell,
  shortPath,
  UsageError,
} from '../kit.ts'
import { load } from '../load.ts'
import { originOf } from '../running-gateway.ts'
import { clientNamed, connectionsOf, fileOf, hostEnvironment, listClients } from './client-state.ts'
import { noteOf, planServers, printDiff } from './config-file.ts'

type ConnectOptions = OptionsOf<'connect'>

/** Connects a client to Toolway or disconnects it; without a client, lists the clients. */
export async function connect(
  shell: Shell,
  name: string | undefined,
  options: ConnectOptions,
): Promise<ExitCode | undefined> {
  if (name === undefined) return void (await listClients(shell, options))
  if (options.stdio && options.http) throw new UsageError('--stdio and --http cannot be used together.')
  if (options.undo && options.endpoint !== undefined)
    throw new UsageError('--undo restores the whole file.', 'Use --remove --endpoint to remove only this entry.')
  const output = createOutput(shell, options.json)
  const file = await fileOf(clientNamed(name), hostEnvironment(shell), options.project ? 'project' : 'user')
  if (options.undo) return void (await undo(shell, file, options.force === true, output))
  const edit = await planEdit(file, shell, options)
  const changes = edit.after !== edit.before.text
  if (!options.json) preview(edit, changes, output, shell)
  const written =
    changes && !options.dryRun && (await confirmed(shell, options, edit)) ? await write(edit, shell) : undefined
  if (options.json) output.value({ ...asJson(edit), written: written !== undefined, backup: written?.backup ?? null })
  else if (written) printResult(edit, written, output, shell)
  return changes && !options.dryRun && !written ? exit.failed : undefined
}

/** Writes both files. Our configuration is written first, so that a server is always in at least one of them. */
async function write({ file, before, after, move }: Edit, shell: Shell) {
  await move?.write()
  return connectionsOf(shell).write(file.client, before, after)
}

async function confirmed(shell: Shell, { yes, json }: ConnectOptions, { file }: Edit): Promise<boolean> {
  if (yes) return true
  if (!json && isInteractive(shell)) return confirm(shell, `Change ${clientLabels[file.client]}'s configuration file?`)
  throw new UsageError('Nothing was written: confirmation needs a terminal.', 'Add --yes to write without asking.')
}

function preview(edit: Edit, changes: boolean, output: Output, shell: Shell): void {
  const { file, before, after, way, entry, own, move, servers } = edit
  const label = clientLabels[file.client]
  if (!changes) {
    output.print(way ? `${label} is already connected this way.` : `${label} is not connected${asEntry(own)}.`)
    return
  }
  printDiff(shortPath(file.path, shell), before.text, after, servers, output)
  move?.preview(output)
  const folder = statSync(dirname(before.target), { throwIfNoEntry: false })
  if (!before.bytes && !folder?.isDirectory()) output.warn(`${label} has no files here yet; is it installed?`)
  if (entry && way) noteToken(entry, way, output)
}

const asEntry = (own: string): string => (own === ownEntryName() ? '' : ` as ${own}`)

type Written = Awaited<ReturnType<typeof write>>

function printResult({ file, way, own, move, variables }: Edit, written: Written, output: Output, shell: Shell): void {
  const label = clientLabels[file.client]
  const how = way?.kind === 'http' ? `connect to Toolway at ${way.url}` : 'start Toolway'
  output.print(
    way
      ? `${label} is now configured to ${how}. Restart ${label} to apply the change.`
      : `${label} no longer uses Toolway${asEntry(own)}.`,
  )
  move?.report(output)
  const restoring = written.changed
    ? '--undo --force restores it and discards the changes that were made since the file was connected'
    : '--undo restores it'
  output.note(`The original file is kept in ${shortPath(written.backup, shell)}; ${restoring}.`)
  if (variables.length === 0) return
  output.warn(
    `The configuration uses environment variables (${variables.join(', ')}): ${label} must pass them to Toolway.`,
  )
}

const asJson = ({ file, way, entry, own, move }: Edit) => ({
  client: file.client,
  name: own,
  file: file.path,
  way: way?.kind ?? null,
  // Do not print an entry that contains the token.
  entry: way?.kind === 'http' && way.token?.literal !== undefined ? null : (entry ?? null),
  moved: move?.names ?? [],
  kept: move?.kept ?? [],
  warnings: move?.warnings ?? [],
})

/** Restores a client's file exactly as it was before the client was connected. */
async function undo(shell: Shell, { client, path }: ClientFile, force: boolean, output: Output): Promise<void> {
  const { restored, forced, kept } = await connectionsOf(shell).undo(client, path, force)
  if (output.json) return output.value({ client, file: path, undone: true, restored, forced, kept: kept ?? null })
  const file = shortPath(path, shell)
  output.print(restored ? `Restored ${file} for ${clientLabels[client]}.` : `Removed ${file}: it did not exist before.`)
  if (forced) output.warn(`Changes made since then were discarded${kept ? `, but a copy is in ${kept}` : ''}.`)
}

type Edit = Awaited<ReturnType<typeof planEdit>>

/** Plans the edit that adds our entry to the file or, with --remove, removes it. */
async function planEdit(file: ClientFile, shell: Shell, options: ConnectOptions) {
  const { client, path } = file
  const named = shortPath(path, shell)
  const loaded = options.remove ? undefined : await load(shell, options)
  if (loaded) refuseOwnFile(loaded, file, shell)
  if (loaded) checkEndpoint(loaded, options)
  const own = ownEntryName(options.endpoint)
  const way = loaded && (options.http ? await http(loaded, options) : stdio(loaded, options, shell))
  const before = await readSnapshot(path)
  const text = editText(named, () => clientText(client, path, before.text))
  const entry = way && fitting(entryFor(client, clientLabels[client], way), text)
  const content = await readServers(path, homeOf(shell.env), client)
  const move = loaded && options.replace ? await planMove(shell, file, text, content, loaded) : undefined
  const hasNothing = !entry && !Object.hasOwn(text.servers, own)
  return {
    file,
    before,
    after: hasNothing ? before.text : editText(named, () => text.edited(entry, move?.names, own)),
    /** How the client will connect; absent if the edit removes our entry. */
    way,
    entry,
    own,
    /** The client's other servers, if they move into our configuration. */
    move,
    /** The servers in the client's file; their secrets must not be shown. */
    servers: content.servers.map(({ definition }) => definition),
    /** Variables that our configuration uses. The client may start Toolway without them. */
    variables: loaded && way?.kind === 'stdio' ? await variablesOf(loaded, shell) : [],
  }
}

/** Adapts the entry to OpenCode's newer format, which nests servers one level deeper and does not support `enabled`. */
function fitting(entry: { enabled?: unknown }, { path }: ClientText): object {
  const { enabled: _, ...rest } = entry
  return path.length > 1 ? rest : entry
}

/** Throws if the endpoint does not exist, or if its callers act as another agent. */
function checkEndpoint({ config: { endpoints } }: LoadedConfig, { endpoint: name, agent }: ConnectOptions): void {
  if (name === undefined) return
  const known = Object.keys(endpoints)
  if (!known.includes(name)) {
    const list =
      known.length === 0 ? 'Add it to endpoints in the configuration.' : `The endpoints are ${known.join(', ')}.`
    throw new UsageError(`There is no endpoint ${name}${didYouMean(name, known)}`, list)
  }
  const acting = endpoints[name]?.agent
  if (agent !== undefined && acting !== undefined && agent !== acting)
    throw new UsageError(`Callers of the endpoint ${name} act as ${acting}.`, 'Omit --agent.')
}

/** Throws if the client's file is also our configuration. */
function refuseOwnFile({ files }: LoadedConfig, { path, client }: ClientFile, shell: Shell): void {
  if (!files.some((file) => file.path === path)) return
  throw new UsageError(
    `The configuration in use, ${shortPath(path, shell)}, is also ${clientLabels[client]}'s configuration file.`,
    'Run `toolway init` to create a separate configuration from it, then connect again.',
  )
}

/** Variables that the system sets for every program. */
const everywhere = ['HOME', 'PATH', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR', 'USERPROFILE', 'APPDATA']

async function variablesOf({ files }: LoadedConfig, { env }: Shell): Promise<string[]> {
  const contents = await Promise.all(files.map(({ path }) => readServers(path, homeOf(env))))
  const used = contents.flatMap(({ servers }) => servers.map(({ definition }) => definition))
  return variablesIn(used.filter(({ disabled }) => disabled !== true)).filter((name) => !everywhere.includes(name))
}

const tokenVariable = 'TOOLWAY_TOKEN'

/** The entry for stdio. The client's working folder is unknown, and so is its PATH. */
function stdio({ files }: LoadedConfig, { agent, endpoint }: ConnectOptions, { program }: Shell): ClientTransport {
  if (files.length === 0) {
    throw new UsageError(
      'The client cannot start Toolway: no configuration file was found.',
      'Create one with `toolway init`, or specify a file with --config.',
    )
  }
  const named = files.flatMap(({ path }) => ['--config', path])
  const acting = agent === undefined ? [] : ['--agent', agent]
  const place = endpoint === undefined ? [] : ['--endpoint', endpoint]
  const [command = '', ...words] = program
  return { kind: 'stdio', command, args: [...words, 'stdio', ...named, ...acting, ...place] }
}

async function http({ config }: LoadedConfig, options: ConnectOptions): Promise<ClientTransport> {
  const { agent, endpoint, withToken, dryRun } = options
  if (config.server.port === 0)
    throw new UsageError('server.port is 0, so the address changes at every start.', 'Set server.port to a fixed port.')
  const url = originOf(config.server) + endpointPath(config.server.path, endpoint)
  const headers: Record<string, string> = agent === undefined ? {} : { 'Toolway-Agent': agent }
  const { token } = config.auth
  if (token === 'none') return { kind: 'http', url, headers }
  // Only a generated token is stored in a file that the client can read.
  const file = token === 'generated' ? join(config.stores.common, 'token') : undefined
  // Create the token now so that its file exists, except in a dry run.
  const kept = file !== undefined && (withToken || !dryRun) ? await keptToken(config.stores.common) : token
  return { kind: 'http', url, headers, token: { variable: tokenVariable, file, literal: withToken ? kept : undefined } }
}

function noteToken(entry: object, way: ClientTransport, { note }: Output): void {
  if (way.kind !== 'http' || !way.token || way.token.literal !== undefined) return
  if (!JSON.stringify(entry).includes(tokenVariable)) return
  note(`The client reads the token from the variable ${tokenVariable}; set it where the client is started:`)
  const value = way.token.file === undefined ? '…' : `"$(cat ${way.token.file})"`
  note(`  export ${tokenVariable}=${value}`)
}

/** Plans to move all of a client's servers, except our own entry, into our configuration. */
async function planMove(shell: Shell, file: ClientFile, text: ClientText, content: ServersFile, loaded: LoadedConfig) {
  const written = (wanted: ConfigDialect) =>
    loaded.files.findLast(({ path, dialect }) => dialect === wanted && /\.ya?ml$/.test(path))?.path
  // A configuration with no section other than `mcpServers` counts as a plain list of servers.
  const into = written('toolway') ?? written('mcpServers')
  if (into === undefined) {
    throw new UsageError('There is no toolway.yaml to move the servers into.', 'Run `toolway init` to write one.')
  }
  const { client, path, scope } = file
  const others = Object.keys(text.servers).filter((name) => !text.own.includes(name))
  const found = others.map((name) => {
    const server = content.servers.find(({ key }) => key === keyPath([...text.path, name]))
    return { name, server, reason: reasonToKeep(text.servers[name], server) }
  })
  const movable = found.flatMap(({ name, server, reason }) => (server && !reason ? [{ name, server }] : []))
  const names = movable.map(({ name }) => name)
  const kept = others.filter((name) => !names.includes(name))
  const servers = movable.map(({ server }) => adaptServer(server, { client, path, scope }, into))
  const target = { path: into, named: shortPath(into, shell) }
  const { prepared, preview, write } = await planServers(shell, target, servers, 'file')
  const keys = names.map((name) => keyPath(['mcpServers', name]))
  const warnings = content.warnings.filter((one) =>
    keys.some((key) => one.startsWith(key) && /[.:]/.test(one.charAt(key.length))),
  )
  return {
    /** The servers' names in the client's file. */
    names,
    kept,
    /** What the client's file says about the moved servers that has no effect in Toolway. */
    warnings,
    preview(output: Output) {
      preview(output)
      for (const warning of warnings) output.warn(`${clientLabels[client]}: ${warning}`)
      for (const { name, reason } of found) {
        if (reason !== undefined) output.warn(`${name} stays in ${clientLabels[client]}: ${reason}.`)
      }
    },
    /** Writes our configuration; called before the client's file is written. */
    async write() {
      if (prepared.added.length > 0) await write()
    },
    report(output: Output) {
      if (names.length > 0)
        output.print(`Moved ${pluralize(names.length, 'server')} behind Toolway: ${names.join(', ')}.`)
      noteOf(prepared, output, 'file')
    },
  }
}

function reasonToKeep(written: unknown, server: ReadServer | undefined): string | undefined {
  if (!server) return 'Toolway cannot run it'
  const [problem] = server.problems
  return problem ? problemText(problem) : clientOnly(written as Readonly<Record<string, unknown>>)
}

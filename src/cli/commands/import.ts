import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { look, replace, type Snapshot } from '../../clients/file.ts'
import { placed } from '../../clients/merge.ts'
import { type ClientFile, clientFiles } from '../../clients/places.ts'
import { addServers, serversBlock } from '../../clients/yaml-servers.ts'
import { kindOf } from '../../config/import/client-kind.ts'
import { type Definition, readServers, type ServersFile } from '../../config/import/read-servers.ts'
import { ConfigError } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'
import { confirm, isInteractive } from '../confirm.ts'
import { type ExitCode, exit } from '../exit.ts'
import { short } from '../home.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput, type Output } from '../output.ts'
import { printDiff } from '../print-diff.ts'
import type { Shell } from '../shell.ts'
import { starterWith } from '../starter.ts'
import { edited, told } from '../told.ts'
import { UsageError } from '../usage.ts'
import { surroundings } from './connect-state.ts'
import { asWritten, count, noteOf, type Prepared, prepare, type SecretsPlace } from './import-prepare.ts'

export interface ImportOptions extends CommonOptions {
  readonly into: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly secrets: SecretsPlace
}

/** Adds the servers of a file, in whatever dialect, to a configuration of ours. */
export const importServers = (shell: Shell, file: string, options: ImportOptions): Promise<ExitCode> =>
  told(() => run(shell, file, options))

async function run(shell: Shell, file: string, options: ImportOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const path = resolve(shell.cwd, file)
  const into = resolve(shell.cwd, options.into)
  if (path === into) throw new UsageError('A file cannot be imported into itself.')
  const target = await lookInto(into, options.into)
  const content = await readServers(path, homeOf(shell.env))
  if (content.servers.length === 0 && content.problems.length > 0) throw new ConfigError(content.problems)
  const client = kindOf(path)
  const scope = scopeOf(path, shell)
  const found = content.servers
    .filter(({ problems }) => problems.length === 0)
    .map((server) => placed(server, { path: short(path, shell), scope, ...(client && { client }) }, into))
  const known = await knownIn(target, shell)
  const prepared = await prepare(shell, found, known, options.secrets)
  const text = withServers(target, prepared, options.into)

  tellOf(content, output, shell)
  if (!options.json) preview(target, text, known, prepared, options, output)
  const written = prepared.added.length > 0 && options.dryRun !== true && (await agreed(shell, options))
  if (written) {
    await prepared.writeSecrets()
    await replace(target, Buffer.from(target.mark + text))
  }
  if (options.json) output.value(asJson(into, prepared, content, written))
  else if (written) output.print(`Added ${count(prepared.added.length, 'server')} to ${options.into}.`)
  if (!options.json && (written || options.dryRun)) noteOf(prepared, output, options.secrets)
  return prepared.added.length > 0 && !written && !options.dryRun ? exit.failed : exit.ok
}

/** A client's file that is not the user's lies in a project; a copy somewhere lies in none. */
function scopeOf(path: string, shell: Shell): ClientFile['scope'] {
  const known = clientFiles(surroundings(shell)).find((file) => file.path === path)
  return known?.scope ?? (kindOf(path) ? 'project' : 'user')
}

/** The file to add to; only YAML keeps its comments and its form. */
export async function lookInto(path: string, named: string): Promise<Snapshot> {
  if (!/\.ya?ml$/.test(path)) {
    throw new UsageError(
      `Servers are added to YAML, so ${named} should end in .yaml.`,
      'Choose another file with --into.',
    )
  }
  return lookForConfig(path, named)
}

/** A configuration of ours, there or to be made; it holds no secrets, so others may read a new one. */
export async function lookForConfig(path: string, named: string): Promise<Snapshot> {
  const target = await look(path)
  if (!existsSync(dirname(target.target))) throw new UsageError(`There is no folder to write ${named} into.`)
  return target.bytes ? target : { ...target, mode: 0o644 }
}

/** The servers that a configuration has already; one that cannot be read is not added to. */
export async function knownIn({ path, bytes }: Snapshot, { env }: Shell): Promise<Map<string, Definition>> {
  if (!bytes) return new Map()
  const { servers, problems } = await readServers(path, homeOf(env))
  if (problems.length > 0) throw new ConfigError(problems)
  return new Map(servers.map(({ name, definition }) => [name, definition]))
}

/** The configuration with what is new in it. */
export function withServers({ bytes, text }: Snapshot, { added }: Prepared, named: string): string {
  const servers = added.map(asWritten)
  if (!bytes && servers.length > 0) return starterWith(serversBlock(servers))
  return edited(named, () => addServers(text, servers))
}

const agreed = async (shell: Shell, { yes, json, into }: ImportOptions): Promise<boolean> =>
  yes || json || !isInteractive(shell) ? true : confirm(shell, `Write ${into}?`)

function tellOf(
  { problems, servers, warnings, sections }: ServersFile,
  { note, paintNote }: Output,
  shell: Shell,
): void {
  for (const { file, line, key, message } of [...problems, ...servers.flatMap((server) => server.problems)]) {
    const place = `${short(file, shell)}${line === undefined ? '' : `:${line}`}`
    note(paintNote('yellow', `${place}: ${key === '' ? '' : `${key}: `}${message}; left out`))
  }
  for (const warning of warnings) note(paintNote('yellow', warning))
  if (sections.length > 0) {
    note(`Only servers are imported; ${sections.join(', ')} of that file can be used with --config.`)
  }
}

function preview(
  target: Snapshot,
  text: string,
  known: ReadonlyMap<string, Definition>,
  prepared: Prepared,
  { into }: ImportOptions,
  output: Output,
): void {
  for (const name of prepared.present) output.print(`${name} is in ${into} already.`)
  if (prepared.added.length === 0) output.print(`Nothing to add to ${into}.`)
  else {
    output.print(output.paint('bold', into))
    printDiff(target.text, text, [...known.values()], output)
  }
}

const asJson = (into: string, prepared: Prepared, content: ServersFile, written: boolean) => ({
  into,
  dialect: content.dialect ?? null,
  added: prepared.added.map(({ name }) => name),
  present: prepared.present,
  notes: prepared.notes,
  warnings: content.warnings,
  problems: [...content.problems, ...content.servers.flatMap(({ problems }) => problems)],
  secrets: prepared.secrets,
  unset: prepared.unset,
  written,
})

import { resolve } from 'node:path'
import { type ClientFile, clientFiles } from '../../clients/client-files.ts'
import { type FileSnapshot, replaceFile } from '../../clients/file.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { kindOf } from '../../config/import/client-kind.ts'
import { readServers, type ServerDefinition, type ServersFile } from '../../config/import/read-servers.ts'
import { ConfigError } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'
import {
  confirm,
  createOutput,
  type ExitCode,
  exit,
  isInteractive,
  type Output,
  type Shell,
  shortPath,
  UsageError,
  withFileProblems,
} from '../kit.ts'
import type { CommonOptions } from '../load.ts'
import { printDiff } from '../print-diff.ts'
import { surroundings } from './client-state.ts'
import { knownIn, lookInto, withServers } from './config-file.ts'
import { count, noteOf, type PreparedImport, prepareImport, type SecretStorage } from './prepare-import.ts'

interface ImportOptions extends CommonOptions {
  readonly into: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly secrets: SecretStorage
}

/** Adds the servers of a file in any supported format to our configuration. */
export const importServers = (shell: Shell, file: string, options: ImportOptions): Promise<ExitCode> =>
  withFileProblems(() => run(shell, file, options))

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
    .map((server) => adaptServer(server, { path: shortPath(path, shell), scope, ...(client && { client }) }, into))
  const known = await knownIn(target, shell)
  const prepared = await prepareImport(shell, found, known, options.secrets)
  const text = withServers(target, prepared, options.into)

  tellOf(content, output, shell)
  if (!options.json) preview(target, text, known, prepared, options, output)
  const written = prepared.added.length > 0 && options.dryRun !== true && (await agreed(shell, options))
  if (written) {
    await prepared.writeSecrets()
    await replaceFile(target, Buffer.from(target.mark + text))
  }
  if (options.json) output.value(asJson(into, prepared, content, written))
  else if (written) output.print(`Added ${count(prepared.added.length, 'server')} to ${options.into}.`)
  if (!options.json && (written || options.dryRun)) noteOf(prepared, output, options.secrets)
  return prepared.added.length > 0 && !written && !options.dryRun ? exit.failed : exit.ok
}

/** A client's file that is not the user's belongs to a project. */
function scopeOf(path: string, shell: Shell): ClientFile['scope'] {
  const known = clientFiles(surroundings(shell)).find((file) => file.path === path)
  return known?.scope ?? (kindOf(path) ? 'project' : 'user')
}

const agreed = async (shell: Shell, { yes, json, into }: ImportOptions): Promise<boolean> =>
  yes || json || !isInteractive(shell) ? true : confirm(shell, `Write ${into}?`)

function tellOf(
  { problems, servers, warnings, sections }: ServersFile,
  { note, paintNote }: Output,
  shell: Shell,
): void {
  for (const { file, line, key, message } of [...problems, ...servers.flatMap((server) => server.problems)]) {
    const place = `${shortPath(file, shell)}${line === undefined ? '' : `:${line}`}`
    note(paintNote('yellow', `${place}: ${key === '' ? '' : `${key}: `}${message}; left out`))
  }
  for (const warning of warnings) note(paintNote('yellow', warning))
  if (sections.length > 0) {
    note(`Only servers are imported; ${sections.join(', ')} of that file can be used with --config.`)
  }
}

function preview(
  target: FileSnapshot,
  text: string,
  known: ReadonlyMap<string, ServerDefinition>,
  prepared: PreparedImport,
  { into }: ImportOptions,
  output: Output,
): void {
  for (const name of prepared.present) output.print(`${name} is already in ${into}.`)
  if (prepared.added.length === 0) output.print(`Nothing to add to ${into}.`)
  else {
    output.print(output.paint('bold', into))
    printDiff(target.text, text, [...known.values()], output)
  }
}

const asJson = (into: string, prepared: PreparedImport, content: ServersFile, written: boolean) => ({
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

import { resolve } from 'node:path'
import { asWritten, type PreparedImport, prepareImport } from '../../admin/config/prepare-import.ts'
import { starter, starterWith } from '../../admin/config/starter.ts'
import { adaptServer, discover, type FoundFile } from '../../clients/import-plan.ts'
import { serversBlock } from '../../config/edit/edit-text.ts'
import { type FileSnapshot, readSnapshot, replaceFile } from '../../config/edit/file.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { pluralize } from '../../lib/message-text.ts'
import type { OptionsOf } from '../command-table.ts'
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
} from '../kit.ts'
import { clientNamed, hostEnvironment } from './client-state.ts'
import {
  allProblems,
  fileToWrite,
  noteOf,
  readConfigFile,
  refuseInvalid,
  warnOfProblems,
  writeConfig,
} from './config-file.ts'

/** Writes a configuration with the servers from all clients on this machine, or a starter if there are none. */
export async function init(shell: Shell, options: OptionsOf<'init'>): Promise<ExitCode | undefined> {
  const { force, json, dryRun } = options
  const file = fileToWrite('--output', options.output, options)
  if (!/\.ya?ml$/.test(file)) throw new UsageError(`The configuration is YAML, so ${file} must end in .yaml.`)
  const path = resolve(shell.cwd, file)
  const before = await readConfigFile(path, file)
  if (before.bytes && !force && !dryRun) {
    throw new UsageError(
      `${file} already exists.`,
      'Replace it with --force, add to it with `toolway import`, or choose another --output.',
    )
  }
  const output = createOutput(shell, json)
  const found = await foundFiles(shell, options)
  const prepared = await prepareImport(shell, usable(found, path), new Map(), options.secrets)
  await refuseInvalid(shell, path, prepared.added)
  const text = prepared.added.length > 0 ? starterWith(serversBlock(prepared.added.map(asWritten))) : starter

  if (!json) printFound(found, prepared, output, shell)
  if (dryRun) {
    if (json) output.value(asJson(path, found, prepared, { dryRun: true, text }))
    else for (const line of text.trimEnd().split('\n')) output.print(line)
    return
  }
  if (!json && !options.yes && prepared.added.length > 0 && isInteractive(shell)) {
    if (!(await confirm(shell, `Write ${file}?`))) return exit.failed
  }
  await prepared.writeSecrets()
  if (before.bytes && before.text.trim() !== '') await keepOld(before, `${path}.backup`, output)
  const stateNote = await writeConfig({ before: { ...before, mark: '' } }, text, shell)
  if (json) output.value(asJson(path, found, prepared))
  else {
    printNextSteps(file, found, prepared, shell)
    if (stateNote !== undefined) output.note(stateNote)
    if (prepared.added.length > 0) noteOf(prepared, output, options.secrets)
  }
}

/** Saves a backup, because the replaced file may be the only copy of the user's servers. */
async function keepOld(before: FileSnapshot, path: string, { note }: Output): Promise<void> {
  await replaceFile({ ...(await readSnapshot(path)), mode: before.mode }, before.bytes ?? Buffer.alloc(0))
  note(`The old file was saved as ${path}.`)
}

async function foundFiles(shell: Shell, { from }: OptionsOf<'init'>): Promise<FoundFile[]> {
  const clients = from?.map(clientNamed)
  const found = await discover(hostEnvironment(shell), clients)
  if (clients && found.length === 0) {
    throw new UsageError(`No file was found for ${clients.map((client) => clientLabels[client]).join(', ')}.`)
  }
  return found.filter(({ content }) => content.servers.length > 0 || content.problems.length > 0)
}

/** The usable servers, adapted to our configuration. */
const usable = (found: readonly FoundFile[], into: string) =>
  found.flatMap(({ client, path, scope, content }) =>
    content.servers
      .filter(({ problems }) => problems.length === 0)
      .map((server) => adaptServer(server, { client, path, scope }, into)),
  )

function printNextSteps(file: string, found: readonly FoundFile[], { added }: PreparedImport, shell: Shell): void {
  const { print } = createOutput(shell)
  const { command } = shell
  const config = file === 'toolway.yaml' ? '' : ` --config ${file}`
  if (added.length === 0) {
    print(`Wrote ${file}. Next:\n  1. add your servers to mcpServers in this file`)
    print(`  2. ${command} validate${config}\n  3. ${command} serve${config}`)
    return
  }
  print(`Wrote ${file} with ${pluralize(added.length, 'server')}. Next:\n  1. ${command} tools${config}`)
  const sources = found.filter(({ content }) => content.servers.length > 0)
  for (const [index, { client, scope }] of sources.entries()) {
    const project = scope === 'project' ? ' --project' : ''
    print(`  ${index === 0 ? '2.' : '  '} ${command} connect ${client}${project} --replace${config}`)
  }
}

const asJson = (path: string, found: readonly FoundFile[], prepared: PreparedImport, more = {}) => ({
  path,
  found: found.map(({ client, path: file, scope, content }) => ({
    client,
    file,
    scope,
    servers: content.servers.map(({ name }) => name),
    problems: allProblems(content),
    warnings: content.warnings,
  })),
  servers: prepared.added.map(({ name, origins }) => ({ name, from: origins.map(({ client }) => client ?? null) })),
  notes: prepared.notes,
  secrets: prepared.secrets,
  unset: prepared.unset,
  ...more,
})

function problemCount({ content }: FoundFile): string {
  const { length } = allProblems(content)
  return length === 0 ? '' : pluralize(length, 'problem')
}

function printFound(found: readonly FoundFile[], prepared: PreparedImport, output: Output, shell: Shell): void {
  const { print, note, warn, paint } = output
  if (found.length === 0) {
    note('No servers were found in the clients on this machine.')
    return
  }
  output.table<FoundFile>(found, [
    { title: 'CLIENT', value: ({ client }) => clientLabels[client], whole: true },
    { title: 'FILE', value: ({ path }) => shortPath(path, shell), style: (cell) => paint('dim', cell) },
    { title: 'SERVERS', value: ({ content }) => content.servers.map(({ name }) => name).join(', ') },
    { title: 'PROBLEMS', value: problemCount, style: (cell) => paint('yellow', cell) },
  ])
  print('')
  for (const { client, content } of found) {
    warnOfProblems(allProblems(content), output, shell)
    for (const warning of content.warnings) warn(`${clientLabels[client]}: ${warning}`)
  }
  if (prepared.added.length === 0)
    note('None of these servers can be used, so a starter configuration will be written.')
}

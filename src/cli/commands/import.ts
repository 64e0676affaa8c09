import { resolve } from 'node:path'
import { adaptServer } from '../../clients/import-plan.ts'
import { type ClientFile, clientFiles, clientLabels, kindOf } from '../../config/import/client-kind.ts'
import { readServers } from '../../config/import/read-servers.ts'
import { isForeign } from '../../config/import/shape.ts'
import { type NewReference, referenceText } from '../../config/interpolate.ts'
import { ConfigError } from '../../config/problems.ts'
import { homeOf } from '../../core/home.ts'
import { pluralize } from '../../lib/message-text.ts'
import type { OptionsOf } from '../command-table.ts'
import { confirm, createOutput, type ExitCode, exit, isInteractive, type Shell, shortPath, UsageError } from '../kit.ts'
import { hostEnvironment } from './client-state.ts'
import { allProblems, fileToWrite, noteOf, planServers, warnOfProblems } from './config-file.ts'

/** Adds the servers from a file in any supported format to our configuration. */
export async function importServers(shell: Shell, file: string, options: OptionsOf<'import'>): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { json, dryRun, secrets } = options
  const named = fileToWrite('--into', options.into, options)
  const path = resolve(shell.cwd, file)
  const into = resolve(shell.cwd, named)
  if (path === into) throw new UsageError('A file cannot be imported into itself.')
  const content = await readServers(path, homeOf(shell.env))
  if (content.servers.length === 0 && content.problems.length > 0) throw new ConfigError(content.problems)
  if (content.servers.length === 0 && !(content.dialect && isForeign(content.dialect))) {
    throw new UsageError(
      `No servers were found in ${file}.`,
      `Servers are read from mcpServers and from the files of ${Object.values(clientLabels).join(', ')} and Continue.`,
    )
  }
  const origin = { path, shown: shortPath(path, shell), scope: scopeOf(path, shell), client: kindOf(path) }
  const found = content.servers
    .filter(({ problems }) => problems.length === 0)
    .map((server) => adaptServer(server, origin, into))
  const { prepared, references, preview, write } = await planServers(shell, { path: into, named }, found, secrets)
  const { added, present } = prepared
  const unusable = found.length === 0 && content.servers.length > 0

  warnOfProblems(allProblems(content), output, shell)
  for (const warning of content.warnings) output.warn(warning)
  if (content.sections.length > 0) {
    output.note(
      `Only servers are imported; to use ${content.sections.join(', ')} as well, pass that file with --config.`,
    )
  }
  if (!json) {
    for (const { name, as } of present)
      output.print(`${name} is already in ${named}${as === name ? '' : `, as ${as}`}.`)
    if (added.length > 0) preview(output)
    else output.print(unusable ? `None of the servers in ${file} can be imported.` : `Nothing to add to ${named}.`)
  }
  const written = added.length > 0 && !dryRun && (await confirmed(shell, named, references, options))
  if (written) await write(output)
  if (json) {
    output.value({
      into,
      dialect: content.dialect ?? null,
      added: added.map(({ name }) => name),
      present: present.map(({ as }) => as),
      notes: prepared.notes,
      warnings: content.warnings,
      problems: allProblems(content),
      secrets: prepared.secrets,
      unset: prepared.unset,
      written,
    })
  } else {
    if (written) output.print(`Added ${pluralize(added.length, 'server')} to ${named}.`)
    if (written || dryRun || added.length === 0) noteOf(prepared, output, secrets)
  }
  if (unusable) return exit.usage
  return added.length > 0 && !written && !dryRun ? exit.failed : exit.ok
}

/** Whose servers a file contains: a user's or a project's. A client's file at an unknown path belongs to a project. */
function scopeOf(path: string, shell: Shell): ClientFile['scope'] {
  const known = clientFiles(hostEnvironment(shell)).find((file) => file.path === path)
  return known?.scope ?? (kindOf(path) ? 'project' : 'user')
}

/** Whether to write the file. Values of this machine are passed on only if somebody agrees: the file may be anybody's. */
async function confirmed(
  shell: Shell,
  named: string,
  references: readonly NewReference[],
  { yes, json }: OptionsOf<'import'>,
): Promise<boolean> {
  const mayAsk = !json && isInteractive(shell)
  if (yes || (references.length === 0 && !mayAsk)) return true
  const values = references.map(referenceText).join(', ')
  if (!mayAsk) {
    throw new UsageError(`These servers get values from this machine: ${values}.`, 'If that is intended, pass --yes.')
  }
  return confirm(shell, values === '' ? `Write ${named}?` : `Write ${named}, and pass on ${values}?`)
}

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { discover, type FoundFile } from '../../clients/client-files.ts'
import { type FileSnapshot, readSnapshot, replaceFile } from '../../clients/file.ts'
import { adaptServer } from '../../clients/import-plan.ts'
import { serversBlock } from '../../clients/yaml-servers.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import type { ConfigProblem } from '../../config/problems.ts'
import {
  commandName,
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
import { table } from '../table.ts'
import { clientNamed, surroundings } from './client-state.ts'
import { starter, starterWith } from './config-file.ts'
import { asWritten, count, noteOf, type PreparedImport, prepareImport, type SecretStorage } from './prepare-import.ts'

interface InitOptions extends CommonOptions {
  readonly output: string
  readonly force?: boolean
  readonly yes?: boolean
  readonly dryRun?: boolean
  readonly from?: readonly string[]
  readonly secrets: SecretStorage
}

/** Writes a configuration with the servers of all clients on this machine, or a starter where there are none. */
export const init = (shell: Shell, options: InitOptions): Promise<ExitCode> =>
  withFileProblems(() => run(shell, options))

async function run(shell: Shell, options: InitOptions): Promise<ExitCode> {
  const { output: file, force, json, dryRun } = options
  if (!/\.ya?ml$/.test(file)) throw new UsageError(`The configuration is YAML, so ${file} must end in .yaml.`)
  const path = resolve(shell.cwd, file)
  const before = await readSnapshot(path)
  if (!existsSync(dirname(before.target))) throw new UsageError(`The folder of ${file} does not exist.`)
  if (before.bytes && !force && !dryRun) {
    throw new UsageError(
      `${file} already exists.`,
      'Replace it with --force, add to it with `toolway import`, or choose another --output.',
    )
  }
  const output = createOutput(shell, json)
  const found = await foundFiles(shell, options)
  const prepared = await prepareImport(shell, usable(found, path), new Map(), options.secrets)
  const text = prepared.added.length > 0 ? starterWith(serversBlock(prepared.added.map(asWritten))) : starter

  if (!json) printFound(found, prepared, output, shell)
  if (dryRun) {
    if (json) output.value(asJson(path, found, prepared, { dryRun: true, text }))
    else for (const line of text.trimEnd().split('\n')) output.print(line)
    return exit.ok
  }
  if (!json && !options.yes && prepared.added.length > 0 && isInteractive(shell)) {
    if (!(await confirm(shell, `Write ${file}?`))) return exit.failed
  }
  await prepared.writeSecrets()
  if (before.bytes && before.text.trim() !== '') await keepOld(before, `${path}.backup`, output)
  await replaceFile({ ...before, mode: before.bytes ? before.mode : 0o644 }, Buffer.from(text))
  if (json) output.value(asJson(path, found, prepared))
  else tell(file, found, prepared, options, output, commandName(shell.env))
  return exit.ok
}

/** Keep a backup: the replaced file may be the only copy of the user's servers. */
async function keepOld(before: FileSnapshot, path: string, { note }: Output): Promise<void> {
  await replaceFile({ ...(await readSnapshot(path)), mode: before.mode }, before.bytes ?? Buffer.alloc(0))
  note(`The old file is in ${path}.`)
}

async function foundFiles(shell: Shell, { from }: InitOptions): Promise<FoundFile[]> {
  const clients = from?.map(clientNamed)
  const found = await discover(surroundings(shell), clients)
  if (clients && found.length === 0) {
    throw new UsageError(`No file of ${clients.map((client) => clientLabels[client]).join(', ')} was found.`)
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

function tell(
  file: string,
  found: readonly FoundFile[],
  prepared: PreparedImport,
  { secrets }: InitOptions,
  output: Output,
  command: string,
): void {
  const config = file === 'toolway.yaml' ? '' : ` --config ${file}`
  if (prepared.added.length === 0) {
    output.print(
      [
        `Wrote ${file}. Next:`,
        '  1. put your servers under mcpServers in it',
        `  2. ${command} validate${config}`,
        `  3. ${command} serve${config}`,
      ].join('\n'),
    )
    return
  }
  output.print(`Wrote ${file} with ${count(prepared.added.length, 'server')}. Next:`)
  output.print(`  1. ${command} tools${config}`)
  const sources = found.filter(({ content }) => content.servers.length > 0)
  for (const [index, { client, scope }] of sources.entries()) {
    const project = scope === 'project' ? ' --project' : ''
    output.print(`  ${index === 0 ? '2.' : '  '} ${command} connect ${client}${project} --replace${config}`)
  }
  noteOf(prepared, output, secrets)
}

const asJson = (path: string, found: readonly FoundFile[], prepared: PreparedImport, more = {}) => ({
  path,
  found: found.map(({ client, path: file, scope, content }) => ({
    client,
    file,
    scope,
    servers: content.servers.map(({ name }) => name),
    problems: [...content.problems, ...content.servers.flatMap(({ problems }) => problems)],
    warnings: content.warnings,
  })),
  servers: prepared.added.map(({ name, origins }) => ({ name, from: origins.map(({ client }) => client ?? null) })),
  notes: prepared.notes,
  secrets: prepared.secrets,
  unset: prepared.unset,
  ...more,
})

const problemsOf = ({ content }: FoundFile): ConfigProblem[] => [
  ...content.problems,
  ...content.servers.flatMap(({ problems }) => problems),
]

/** Prints the clients that were found, their servers and problems. */
function printFound(found: readonly FoundFile[], prepared: PreparedImport, output: Output, shell: Shell): void {
  const { print, note, paint, paintNote, width } = output
  if (found.length === 0) {
    note('No client on this machine has any servers.')
    return
  }
  const lines = table<FoundFile>(
    [
      { title: 'CLIENT', value: ({ client }) => clientLabels[client], whole: true },
      { title: 'FILE', value: ({ path }) => shortPath(path, shell), style: (cell) => paint('dim', cell) },
      { title: 'SERVERS', value: ({ content }) => content.servers.map(({ name }) => name).join(', ') },
      {
        title: 'PROBLEMS',
        value: (file) => {
          const number = problemsOf(file).length
          return number === 0 ? '' : count(number, 'problem')
        },
        style: (cell) => paint('yellow', cell),
      },
    ],
    found,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
  print('')
  for (const file of found) {
    for (const { line, key, message } of problemsOf(file)) {
      const place = `${shortPath(file.path, shell)}${line === undefined ? '' : `:${line}`}`
      note(paintNote('yellow', `${place}: ${key === '' ? '' : `${key}: `}${message}; left out`))
    }
    for (const warning of file.content.warnings) note(paintNote('yellow', `${clientLabels[file.client]}: ${warning}`))
  }
  if (prepared.added.length === 0) note('None of these servers can be used, so a starter configuration is written.')
}

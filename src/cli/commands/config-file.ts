import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Draft, loadDraft, newProblems } from '../../admin/config/config-file.ts'
import { secretTexts } from '../../admin/config/find-secrets.ts'
import {
  asWritten,
  disabledReason,
  type PreparedImport,
  prepareImport,
  type SecretStorage,
} from '../../admin/config/prepare-import.ts'
import { starterWith } from '../../admin/config/starter.ts'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { diffOf, type ShownLine } from '../../catalog/pins/definition.ts'
import type { FoundServer, PlannedServer } from '../../clients/import-plan.ts'
import { filesIn } from '../../clients/secrets.ts'
import { addServers, serversBlock, serversText } from '../../config/edit/edit-text.ts'
import { FileChanged, type FileSnapshot, lockForEdit, readSnapshot, replaceFile } from '../../config/edit/file.ts'
import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import { readServers, type ServerDefinition, type ServersFile } from '../../config/import/read-servers.ts'
import { claimDefaultState } from '../../config/load.ts'
import { locate } from '../../config/locate.ts'
import { ConfigError, type ConfigProblem, problemText } from '../../config/problems.ts'
import { isWithin } from '../../config/tree.ts'
import { homeOf } from '../../core/home.ts'
import type { CommonOptions } from '../command-table.ts'
import { editText, type Output, type Shell, shortPath, UsageError } from '../kit.ts'
import { printable } from '../table.ts'

/** The one file that a command edits. */
export type ConfigFile = Awaited<ReturnType<typeof openConfig>>

/** The file to write: the one that `option` or a single --config names, or toolway.yaml in this folder. */
export function fileToWrite(option: string, given: string | undefined, { config = [] }: CommonOptions): string {
  if (given !== undefined && config.length > 0) {
    throw new UsageError(`${option} and --config cannot be used together.`, 'Both name the file to write; use one.')
  }
  if (config.length > 1) throw new UsageError('Only one file can be written.', 'Name it with a single --config.')
  return given ?? config[0] ?? 'toolway.yaml'
}

/** Opens the file to edit: the one that the user named, the one that would be loaded, or a new one in this folder. */
export async function openConfig(shell: Shell, { config = [] }: CommonOptions) {
  const { env, cwd } = shell
  const { paths: located, problems } = await locate(config, env, cwd)
  if (problems.length > 0) throw new ConfigError(problems)
  const [found, ...others] = located
  if (others.length > 0) {
    throw new UsageError('The configuration is in several files.', 'Specify the file to edit with a single --config.')
  }
  const path = found ?? join(cwd, 'toolway.yaml')
  const named = shortPath(path, shell)
  const before = await readConfigFile(path, named)
  const { servers, dialect } = await serversIn(before, shell)
  if (dialect !== undefined && dialect !== 'toolway' && dialect !== 'mcpServers') {
    const kind = kindOf(path)
    throw new UsageError(
      `${named} is in the ${kind ? clientLabels[kind] : dialect} format, not in Toolway's own.`,
      `\`${shell.command} import ${named}\` imports its servers; name another file with --config.`,
    )
  }
  // Pass only paths that the user named: files that are found automatically are trusted less.
  const paths = found === undefined ? [path] : config
  return {
    path,
    /** The path as shown to the user. */
    named,
    before,
    servers,
    text: editText(named, () => serversText(path, before.text)),
    /** The whole configuration as it would be if this file contained `text`. */
    draft: (text: string) => loadDraft({ paths, env, cwd }, path, text),
  }
}

/** The servers in a file; none if the file does not exist. */
async function serversIn({ path, bytes }: FileSnapshot, { env }: Shell) {
  if (!bytes) return { servers: new Map<string, ServerDefinition>() }
  const { servers, problems, dialect } = await readServers(path, homeOf(env))
  if (problems.length > 0) throw new ConfigError(problems)
  return { servers: new Map(servers.map(({ name, definition }) => [name, definition])), dialect }
}

/** Throws if the change would cause problems that the configuration does not have yet. */
export async function refuseWorse({ before, draft }: ConfigFile, text: string): Promise<Draft> {
  const after = await draft(text)
  const fresh = newProblems(
    before.bytes && after.problems[0] ? (await draft(before.text)).problems : [],
    after.problems,
  )
  if (fresh.length > 0) throw new ConfigError(fresh)
  return after
}

export const showChange = ({ before, named, servers }: ConfigFile, after: string, output: Output): void =>
  printDiff(named, before.text, after, servers.values(), output)

/** How often an edit is tried. Other commands may be editing the same file. */
const maxAttempts = 20

/** Runs an edit, and again if somebody else has changed the file since the edit read it. */
export async function retryIfChanged<T>(edit: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await edit()
    } catch (thrown) {
      if (!(thrown instanceof FileChanged) || attempt === maxAttempts) throw thrown
    }
  }
}

/** Writes the file. Returns what to tell the user about the state folder, if there was no configuration before. */
export async function writeConfig(
  { before }: Pick<ConfigFile, 'before'>,
  after: string,
  shell: Shell,
): Promise<string | undefined> {
  await using _lock = await lockForEdit(before)
  const isFirst = before.bytes === undefined && (await isFoundFirst(before.path, shell))
  await replaceFile(before, Buffer.from(before.mark + after))
  const kept = isFirst ? await claimDefaultState(before.path, shell.env) : undefined
  if (!kept) return undefined
  const folder = shortPath(kept.folder, shell)
  const what = 'Keys, approvals and audit records from before this file existed'
  return kept.configFile === before.path
    ? `${what} are still used; they are in ${folder}.`
    : `${what} are not used with it: they are in ${folder}, which belongs to ${shortPath(kept.configFile, shell)}.`
}

/** Whether a new file will be loaded by default where none has been found so far. */
async function isFoundFirst(path: string, { env, cwd }: Shell): Promise<boolean> {
  const { paths, filesToWatch } = await locate([], env, cwd)
  return paths.length === 0 && filesToWatch.includes(path)
}

/** A server's secret files that are no longer used once the server is replaced by `now` or removed. */
export function secretsLeft({ servers }: ConfigFile, name: string, now?: ServerDefinition): string[] {
  const others = [...servers].filter(([other]) => other !== name)
  const used = new Set(filesIn([now, ...others]))
  return filesIn(servers.get(name)).filter((path) => !used.has(path))
}

export const appliedAutomatically = 'A running gateway applies this automatically.'

/** Our configuration file, existing or new. */
export async function readConfigFile(path: string, named: string): Promise<FileSnapshot> {
  const snapshot = await readSnapshot(path, 0o644)
  if (!existsSync(dirname(snapshot.target))) throw new UsageError(`The folder for ${named} does not exist.`)
  return snapshot
}

/** Throws if a configuration at `path` with these servers could not be loaded. Returns the references that they add. */
export async function refuseInvalid({ env, cwd }: Shell, path: string, added: readonly PlannedServer[]) {
  if (added.length === 0) return []
  const servers = added.map(({ name, withSecrets }) => ({ name, definition: withSecrets }))
  const draft = await loadDraft({ paths: [path], env, cwd }, path, starterWith(serversBlock(servers)))
  // Other sections come from the starter and the environment, not from the servers.
  const own = draft.problems.filter(({ key }) => key === '' || isWithin(key, 'mcpServers'))
  const faults = own.map(problemText)
  if (faults.length > 0) throw new UsageError(`Invalid servers: ${faults.join('; ')}.`, 'Nothing was written.')
  return draft.newReferences.filter(({ key }) => isWithin(key, 'mcpServers'))
}

/** Plans to add servers to a YAML file. The file's comments are kept. */
export async function planServers(
  shell: Shell,
  { path, named }: { readonly path: string; readonly named: string },
  found: readonly FoundServer[],
  secrets: SecretStorage,
) {
  if (!/\.ya?ml$/.test(path)) {
    throw new UsageError(
      `Servers can only be added to YAML files, and ${named} does not end in .yaml.`,
      'Choose another file with --into.',
    )
  }
  const before = await readConfigFile(path, named)
  const { servers } = await serversIn(before, shell)
  const prepared = await prepareImport(shell, found, servers, secrets)
  const references = await refuseInvalid(shell, path, prepared.added)
  const added = prepared.added.map(asWritten)
  const isNew = !before.bytes && added.length > 0
  const after = isNew ? starterWith(serversBlock(added)) : editText(named, () => addServers(before.text, added))
  return {
    prepared,
    references,
    preview(output: Output) {
      if (after !== before.text) printDiff(named, before.text, after, servers.values(), output)
    },
    async write(output?: Output) {
      await prepared.writeSecrets()
      const note = await writeConfig({ before }, after, shell)
      if (note !== undefined) output?.note(note)
    },
  }
}

/** Prints what was done with the servers and their secrets. */
export function noteOf(prepared: PreparedImport, { note, warn }: Output, secrets: SecretStorage): void {
  for (const line of prepared.notes) note(line)
  if (prepared.secrets > 0 && secrets === 'file') {
    note(`Secrets (${prepared.secrets}) are stored in ${prepared.secretsFolder}, which only you can read.`)
  }
  for (const { name, waiting } of prepared.added) {
    if (waiting.length > 0)
      warn(`${name} is ${disabledReason(waiting)}. Provide what is missing, then remove \`disabled\`.`)
  }
  const mine = prepared.unset.filter((name) => prepared.added.every(({ waiting }) => !waiting.includes(name)))
  if (mine.length > 0) warn(`Set ${mine.join(', ')} before you start Toolway.`)
}

export const allProblems = ({ problems, servers }: ServersFile): ConfigProblem[] => [
  ...problems,
  ...servers.flatMap((server) => server.problems),
]

export function warnOfProblems(problems: readonly ConfigProblem[], { warn }: Output, shell: Shell): void {
  for (const { file, line, key, message } of problems) {
    const place = `${shortPath(file, shell)}${line === undefined ? '' : `:${line}`}`
    warn(`${place}: ${key === '' ? '' : `${key}: `}${message}; skipped`)
  }
}

/** Names of settings whose values are secret. */
const keys = ['*token*', '*secret*', '*password*', '*authorization*', '*api_key*', '*cookie*', '*credential*']

const colours = { ' ': 'dim', '…': 'dim', '+': 'green', '-': 'red' } as const

/** Shows what would change in a file, with the servers' secrets redacted. */
export function printDiff(
  file: string,
  before: string,
  after: string,
  servers: Iterable<ServerDefinition>,
  { print, paint }: Output,
): void {
  const redactor = createRedactor({ secrets: [...servers].flatMap(secretTexts), keys })
  const shown = (line: string): string => {
    // Show a line that contains only a reference to a secret, so that the user can check the reference, and the values
    // of auth.token that are not secret.
    const rest = line
      .replace(/(?:Bearer )?(?:\$\{[^{}]*\}|\{(?:env|file):[^{}]*\})/g, '')
      .replace(/\btoken"?\s*[:=]\s*("?)(?:generated|none)\1(?=\s*,?\s*$|\s*\}|\s+#)/, '')
    return rest !== line && redactor.text(rest) === rest ? line : redactor.text(line)
  }
  const lines = diffOf(before, after).map(([mark, text]) => [mark, shown(text)] as ShownLine)
  printLines(file, lines, { print, paint })
}

/** Prints changed lines, which must not contain secrets. */
export function printLines(
  file: string,
  lines: readonly ShownLine[],
  { print, paint }: Pick<Output, 'print' | 'paint'>,
): void {
  print(paint('bold', file))
  for (const [mark, text] of lines) {
    print(paint(colours[mark], mark === '…' ? '  …' : `  ${mark} ${printable(text)}`))
  }
}

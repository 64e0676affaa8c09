import { dirname } from 'node:path'
import { clientLabels } from '../../config/import/client-kind.ts'
import { confirm, isInteractive } from '../confirm.ts'
import { type ExitCode, exit } from '../exit.ts'
import { short } from '../home.ts'
import { createOutput, type Output } from '../output.ts'
import { printDiff } from '../print-diff.ts'
import type { Shell } from '../shell.ts'
import { told } from '../told.ts'
import { UsageError } from '../usage.ts'
import { connected, disconnected, type Edit, type EditOptions } from './connect-edit.ts'
import { listClients } from './connect-list.ts'
import { clientNamed, connectionsOf, fileOf, isFolder, surroundings } from './connect-state.ts'
import { undo } from './connect-undo.ts'
import { noteToken } from './connect-way.ts'

export interface ConnectOptions extends EditOptions {
  readonly stdio?: boolean
  readonly project?: boolean
  readonly remove?: boolean
  readonly undo?: boolean
  readonly force?: boolean
  readonly yes?: boolean
}

/** Points a client at Toolway, or back; without a client it lists them. */
export const connect = (shell: Shell, name: string | undefined, options: ConnectOptions): Promise<ExitCode> =>
  told(() => (name === undefined ? listClients(shell, options) : run(shell, name, options)))

async function run(shell: Shell, name: string, options: ConnectOptions): Promise<ExitCode> {
  if (options.stdio && options.http) throw new UsageError('--stdio and --http exclude each other.')
  const output = createOutput(shell, options.json)
  const file = await fileOf(clientNamed(name), surroundings(shell), options.project ? 'project' : 'user')
  if (options.undo) return undo(shell, file, options.force === true, output)
  const edit = options.remove ? await disconnected(file, shell) : await connected(file, shell, options)
  const changes = edit.after !== edit.before.text
  if (!options.json) await preview(edit, changes, output, shell)
  const backup =
    changes && !options.dryRun && (await agreed(shell, options, edit)) ? await write(edit, shell) : undefined
  if (options.json) output.value({ ...asJson(edit), written: backup !== undefined, backup: backup ?? null })
  else if (backup !== undefined) tell(edit, backup, output, shell)
  return changes && !options.dryRun && backup === undefined ? exit.failed : exit.ok
}

/** Our configuration comes first: a server is never in neither file. */
async function write({ file, before, after, move }: Edit, shell: Shell): Promise<string> {
  await move.write()
  return (await connectionsOf(shell).write(file.client, before, after)).backup
}

async function agreed(shell: Shell, { yes, json }: ConnectOptions, { file }: Edit): Promise<boolean> {
  if (yes) return true
  if (!json && isInteractive(shell)) return confirm(shell, `Change the file of ${clientLabels[file.client]}?`)
  throw new UsageError('Nothing was written: there is nobody to ask.', 'Add --yes to write it.')
}

async function preview(edit: Edit, changes: boolean, output: Output, shell: Shell): Promise<void> {
  const { file, before, after, way, entry, move, servers } = edit
  const { print, paint, note, paintNote } = output
  const label = clientLabels[file.client]
  if (!changes) {
    print(way ? `${label} is connected like this already.` : `${label} is not connected.`)
    return
  }
  print(paint('bold', short(file.path, shell)))
  printDiff(before.text, after, servers, output)
  move.preview(output)
  if (!before.bytes && !(await isFolder(dirname(before.target)))) {
    note(paintNote('yellow', `${label} has no files here yet; is it installed?`))
  }
  if (entry && way) noteToken(entry, way, output)
}

function tell({ file, way, move, variables }: Edit, backup: string, output: Output, shell: Shell): void {
  const { print, note, paintNote } = output
  const label = clientLabels[file.client]
  const how = way?.kind === 'http' ? `reaches Toolway at ${way.url}` : 'starts Toolway itself'
  print(way ? `${label} ${how}. Start it again to take this over.` : `${label} does not come to Toolway any more.`)
  move.tell(output)
  note(`The file as it was is kept in ${short(backup, shell)}; --undo puts it back.`)
  if (variables.length === 0) return
  note(paintNote('yellow', `The configuration refers to ${variables.join(', ')}: ${label} must pass that on.`))
}

const asJson = ({ file, way, entry, move }: Edit) => ({
  client: file.client,
  file: file.path,
  way: way?.kind ?? null,
  // With the token in it, the entry is nobody else's business.
  entry: way?.kind === 'http' && way.token?.literal !== undefined ? null : (entry ?? null),
  moved: move.names,
  kept: move.kept,
})

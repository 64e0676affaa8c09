import { ConfigEditor, EditConflict } from '../../admin/config/config-editor.ts'
import { createEditHistory, type RecordedEdit } from '../../admin/config/edit-history.ts'
import { systemClock } from '../../core/clock.ts'
import { osUser } from '../../core/home.ts'
import { keptAuditKey } from '../../stores/secret-file.ts'
import { audited, redactorOf } from '../audited.ts'
import type { CommonOptions, OptionsOf } from '../command-table.ts'
import { createOutput, type Shell, UsageError } from '../kit.ts'
import { load } from '../load.ts'
import { appliedAutomatically, printLines } from './config-file.ts'

async function open(shell: Shell, options: CommonOptions) {
  const loaded = await load(shell, options)
  const { config } = loaded
  const history = createEditHistory(config.stores.path)
  const redactor = redactorOf(loaded)
  const editor = new ConfigEditor({
    source: { paths: options.config ?? [], env: shell.env, cwd: shell.cwd },
    redactor: () => redactor,
    history,
    key: await keptAuditKey(config.stores.path),
    now: () => systemClock.now(),
  })
  return { config, editor, history }
}

/** Lists the edits of the configuration file that were made in the dashboard or through the admin API. */
export async function listEdits(shell: Shell, options: CommonOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  const { history } = await open(shell, options)
  const edits = await history.list()
  if (options.json) {
    output.value({ edits: edits.map(({ before: _, after: __, ...edit }) => edit) })
  } else if (edits.length === 0) output.note('No edits are recorded.')
  else {
    output.table<RecordedEdit>(edits, [
      { title: 'ID', value: ({ id }) => id, whole: true },
      { title: 'TIME', value: ({ at }) => new Date(at).toISOString() },
      { title: 'BY', value: ({ by }) => by },
      { title: 'CHANGED', value: ({ paths, undoes }) => `${undoes === undefined ? '' : 'undid '}${paths.join(', ')}` },
    ])
  }
}

/** Undoes an edit of the configuration file: the given one, or the last. */
export async function undoEdit(shell: Shell, id: string | undefined, options: OptionsOf<'config undo'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const { config, editor, history } = await open(shell, options)
  const edit = id === undefined ? (await history.list())[0] : await history.find(id)
  if (!edit) {
    throw new UsageError(
      id === undefined ? 'No edits are recorded.' : `There is no edit ${id}.`,
      'See them with `toolway config history`.',
    )
  }
  const done = await asUsage(async () => {
    const proposal = await editor.propose({ undo: edit.id })
    if (!options.json) printLines(proposal.file.path, proposal.diff, output)
    if (options.dryRun) return undefined
    const action = { operation: 'undo_config' as const, arguments: { file: proposal.file.path, paths: proposal.paths } }
    return await audited(config, action, () => editor.apply(proposal, proposal.hash, `os:${osUser()}`))
  })
  if (options.json) output.value({ undone: edit.id, written: done !== undefined })
  else if (done) output.print(`Undid the edit of ${edit.paths.join(', ')}. ${appliedAutomatically}`)
}

const asUsage = <T>(work: () => Promise<T>): Promise<T> =>
  work().catch((thrown: unknown) => {
    throw thrown instanceof EditConflict ? new UsageError(thrown.message) : thrown
  })
